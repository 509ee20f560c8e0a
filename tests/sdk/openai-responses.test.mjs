// OpenAI's client, by the Responses API
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import OpenAI, { toFile } from 'openai';

import { CSV, assertPicture, skipWithoutSandbox, startServer } from './server.mjs';

const MODELS = ['fake:text', 'claude:text', 'answers:text'];
const CODE = { type: 'code_interpreter', container: { type: 'auto' } };
let server, client;

before(async () => {
  server = await startServer();
  client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => await server?.stop());

// Without what two answers to the same question may differ in, and what the client itself adds.
const core = (response) =>
  response.output.map(({ id, container_id, ...item }) => ({
    ...item,
    ...(item.content ? { content: item.content.map(({ parsed, ...part }) => part) } : {}),
  }));

// All the rest of a response, but for its id, its times and what the client itself adds.
const rest = ({ id, created_at, completed_at, output, output_parsed, output_text, ...response }) => response;

const withoutCallIds = (items) => items.map(({ call_id, parsed_arguments, ...item }) => item);

const accumulate = async (body) => await client.responses.stream(body).finalResponse();

test('a text, whole and streamed, from every kind of provider', async () => {
  for (const model of MODELS) {
    const body = { model, input: 'Hello there' };
    const whole = await client.responses.create(body);
    assert.equal(whole.object, 'response');
    assert.equal(whole.status, 'completed');
    assert.match(whole.output_text, /Hello there/);
    assert.ok(whole.usage.total_tokens >= whole.usage.input_tokens + whole.usage.output_tokens, model);
    const streamed = await accumulate(body);
    assert.deepEqual(core(streamed), core(whole), model);
    assert.deepEqual(streamed.usage, whole.usage, model);
  }
});

test('an answer is kept: retrieved, gone on from, listed, deleted', async () => {
  for (const model of MODELS) {
    const first = await client.responses.create({ model, input: 'My name is Ada' });
    const again = await client.responses.retrieve(first.id);
    assert.deepEqual(again.output, first.output);

    const second = await accumulate({ model, input: 'What is my name?', previous_response_id: first.id });
    assert.equal(second.previous_response_id, first.id);
    const { body } = await (await fetch(`${server.fakeUrl.replace(/\/v1$/, '')}/_last`)).json();
    assert.ok(body.includes('My name is Ada') && !body.includes(first.id), body);

    const texts = [];
    for await (const item of client.responses.inputItems.list(second.id, { order: 'asc', limit: 1 })) {
      assert.ok(item.id, JSON.stringify(item));
      texts.push(item.content[0].text);
    }
    assert.deepEqual(texts, ['My name is Ada', first.output_text, 'What is my name?']);

    await client.responses.delete(first.id);
    await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
    const error = await client.responses
      .create({ model, input: 'x', previous_response_id: first.id })
      .then(() => assert.fail('it is gone'), (e) => e);
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, 'previous_response_not_found');
    assert.equal(error.param, 'previous_response_id');
  }
});

test("a client's own tool is answered by going on", async () => {
  const tools = [{ type: 'function', name: 'get_time', parameters: { type: 'object', properties: {} }, strict: false }];
  const first = await client.responses.create({ model: 'fake:client', input: 'What time is it?', tools });
  const call = first.output.find((item) => item.type === 'function_call');
  assert.equal(call?.name, 'get_time', JSON.stringify(first.output));
  const second = await client.responses.create({
    model: 'fake:client',
    previous_response_id: first.id,
    input: [{ type: 'function_call_output', call_id: call.call_id, output: 'noon' }],
    tools,
  });
  assert.equal(second.status, 'completed');
  const { body } = await (await fetch(`${server.fakeUrl.replace(/\/v1$/, '')}/_last`)).json();
  const roles = JSON.parse(body).messages.map((m) => m.role);
  assert.deepEqual(roles, ['user', 'assistant', 'tool']);
});

// The file goes into the container; what the code made comes out by the Files API.
async function journey(streamed) {
  const file = await client.files.create({
    file: await toFile(Buffer.from(CSV), 'sales.csv', { type: 'text/csv' }),
    purpose: 'user_data',
  });
  const body = {
    model: 'demo:chart-1',
    tools: [{ ...CODE, container: { type: 'auto', file_ids: [file.id] } }],
    include: ['code_interpreter_call.outputs'],
    input: 'Draw a chart of sales.csv.',
  };
  const response = streamed ? await accumulate(body) : await client.responses.create(body);
  assert.equal(response.status, 'completed');
  const call = response.output.find((item) => item.type === 'code_interpreter_call');
  assert.ok(call, JSON.stringify(response.output));
  assert.equal(call.status, 'completed');
  assert.ok(call.code.length > 0 && call.container_id.length > 0);
  assert.ok(call.outputs.some((o) => o.type === 'logs'), JSON.stringify(call.outputs));
  assert.ok(!response.output.some((item) => item.type === 'function_call'));

  let chart = null;
  for await (const entry of client.files.list()) {
    if (/^chart\.(png|svg)$/.test(entry.filename)) chart ??= entry;
  }
  assert.ok(chart, 'no chart among the files');
  assertPicture(Buffer.from(await (await client.files.content(chart.id)).arrayBuffer()));

  const next = await client.responses.create({ ...body, input: 'Thank you', previous_response_id: response.id });
  assert.equal(next.status, 'completed');
  await client.files.delete(chart.id);
  await client.files.delete(file.id);
}

test('code that ran shows the same, whole and streamed', async (t) => {
  if (skipWithoutSandbox(t, server)) return;
  for (const model of ['fake:tool', 'claude:tool']) {
    const body = { model, tools: [CODE], input: 'run: print(6 * 7)', include: ['code_interpreter_call.outputs'] };
    const whole = await client.responses.create(body);
    const streamed = await accumulate(body);
    assert.deepEqual(core(streamed), core(whole), model);
    assert.deepEqual(rest(streamed), rest(whole), model);
    const call = whole.output.find((item) => item.type === 'code_interpreter_call');
    assert.deepEqual(call.outputs, [{ type: 'logs', logs: '42\n' }]);
  }
});

test('code is seen while it is written, and ends as the whole answer', async (t) => {
  if (skipWithoutSandbox(t, server)) return;
  const tools = [CODE, { type: 'function', name: 'get_time', parameters: { type: 'object' } }];
  const program = 'text = "é 北京 😀 \\ \"quoted\""\nprint(len(text))\n# and a long comment, for many pieces';
  for (const [model, prompt] of [
    ['fake:tool', `run: ${program}`],
    ['claude:tool', `run: ${program}`],
    ['fake:parallel', 'run: print(1)\n---\nprint(2)\n---\nraise SystemExit(3)'],
    ['fake:mixed', 'run: print(1)'],
    ['claude:parallel', 'run: print(1)\n---\nprint(2)'],
    ['fake:badjson', `run: ${program}`],
    ['fake:length', `run: ${program}`],
  ]) {
    const body = { model, tools, input: prompt, include: ['code_interpreter_call.outputs'] };
    const whole = await client.responses.create(body);
    const deltas = {};
    const kinds = [];
    const stream = client.responses.stream(body);
    stream.on('event', (event) => {
      if (!/code_interpreter/.test(event.type)) return;
      kinds.push(event.type.replace(/^response\.code_interpreter_call[._]/, ''));
      if (event.type.endsWith('code.delta')) deltas[event.item_id] = (deltas[event.item_id] ?? '') + event.delta;
      if (event.type.endsWith('code.done')) assert.equal(event.code, deltas[event.item_id] ?? '');
    });
    const final = await stream.finalResponse();
    assert.deepEqual(withoutCallIds(core(final)), withoutCallIds(core(whole)), model);
    assert.equal(final.status, whole.status, model);
    assert.match(kinds.join(' '), /^(in_progress (code\.delta )+code\.done interpreting completed ?)+$/, model);
    for (const item of final.output)
      if (item.type === 'code_interpreter_call') assert.equal(item.code, deltas[item.id], model);
  }
});

test('an uploaded CSV becomes a chart in the code interpreter', async (t) => {
  if (!skipWithoutSandbox(t, server)) await journey(false);
});
test('the same, streamed', async (t) => {
  if (!skipWithoutSandbox(t, server)) await journey(true);
});
