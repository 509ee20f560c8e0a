// OpenAI's client, by Chat Completions and the Files API
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import OpenAI, { toFile } from 'openai';

import { CSV, assertPicture, skipWithoutSandbox, startServer } from './server.mjs';

const CODE = { type: 'code_execution' };
let server, client;

before(async () => {
  server = await startServer();
  client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => await server?.stop());

const ask = (prompt, more = {}) => ({
  model: 'demo:chart-1',
  messages: [{ role: 'user', content: prompt }],
  ...more,
});

test('a plain chat, whole and streamed', async () => {
  const whole = await client.chat.completions.create(ask('Hello there'));
  assert.equal(whole.object, 'chat.completion');
  assert.equal(whole.choices[0].finish_reason, 'stop');
  assert.match(whole.choices[0].message.content, /Hello there/);
  assert.ok(whole.usage.prompt_tokens > 0 && whole.usage.total_tokens > whole.usage.prompt_tokens);

  let text = '';
  let usage = null;
  const stream = await client.chat.completions.create(
    ask('Hello there', { stream: true, stream_options: { include_usage: true } }),
  );
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);

  const final = await client.chat.completions.stream(ask('Hello there')).finalChatCompletion();
  assert.equal(final.choices[0].message.content, text);
});

test('the base URL may be /api/v1 too', async () => {
  const other = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/api/v1`, maxRetries: 0 });
  const whole = await other.chat.completions.create(ask('Hello there'));
  assert.match(whole.choices[0].message.content, /Hello there/);
});

test("a client's own tool, whole and streamed", async () => {
  const tools = [{ type: 'function', function: { name: 'get_time', parameters: { type: 'object', properties: {} } } }];
  const body = ask('What time is it?', { model: 'fake:client', tools });
  const whole = await client.chat.completions.create(body);
  const streamed = await client.chat.completions.stream(body).finalChatCompletion();
  for (const completion of [whole, streamed]) {
    const [choice] = completion.choices;
    assert.equal(choice.finish_reason, 'tool_calls');
    assert.equal(choice.message.tool_calls[0].function.name, 'get_time');
    assert.deepEqual(JSON.parse(choice.message.tool_calls[0].function.arguments), { zone: 'UTC' });
  }
});

// Chat Completions shows nothing of the execution: the chart is found by listing files.
async function journey(streamed) {
  const file = await client.files.create({
    file: await toFile(Buffer.from(CSV), 'sales.csv', { type: 'text/csv' }),
    purpose: 'user_data',
  });
  assert.equal(file.object, 'file');
  assert.equal(file.bytes, CSV.length);
  assert.equal(file.purpose, 'user_data');

  const body = {
    model: 'demo:chart-1',
    tools: [CODE],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Draw a chart of sales.csv.' },
          { type: 'file', file: { file_id: file.id } },
        ],
      },
    ],
  };
  const completion = streamed
    ? await client.chat.completions.stream(body).finalChatCompletion()
    : await client.chat.completions.create(body);
  const { message, finish_reason } = completion.choices[0];
  assert.equal(finish_reason, 'stop');
  assert.ok(!message.tool_calls?.length, JSON.stringify(message));
  assert.match(message.content, /chart\.(png|svg)/);

  let chart = null;
  for await (const entry of client.files.list()) {
    if (/^chart\.(png|svg)$/.test(entry.filename)) chart ??= entry;
  }
  assert.ok(chart, 'no chart among the files');
  assert.ok(message.content.includes(chart.id), `the answer names no ${chart.id}: ${message.content}`);
  const bytes = Buffer.from(await (await client.files.content(chart.id)).arrayBuffer());
  assert.equal(bytes.length, chart.bytes);
  assertPicture(bytes);

  const gone = await client.files.delete(chart.id);
  assert.equal(gone.deleted, true);
  await client.files.delete(file.id);
  await assert.rejects(client.files.retrieve(chart.id), OpenAI.NotFoundError);
}

test('what ran is listed, whole and streamed, and may be sent back', async (t) => {
  if (skipWithoutSandbox(t, server)) return;
  for (const model of ['fake:parallel', 'claude:parallel']) {
    const body = ask("run: print(6 * 7)\n---\nopen('f.txt', 'w').write('x')\n---\nraise SystemExit(3)", { model, tools: [CODE] });
    const whole = await client.chat.completions.create(body);
    const streamed = await client.chat.completions.stream(body).finalChatCompletion();
    const raw = [];
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true }))
      if (chunk.choices[0]?.delta.otari_code_executions) raw.push(chunk.choices[0]);
    assert.equal(raw.length, 1);
    assert.equal(raw[0].finish_reason, 'stop');
    const core = (list) => list.map(({ id, files, ...run }) => ({ ...run, files: files.map((file) => file.filename) }));
    const { message } = whole.choices[0];
    const list = core(message.otari_code_executions);
    assert.deepEqual(core(streamed.choices[0].message.otari_code_executions), list);
    assert.deepEqual(core(raw[0].delta.otari_code_executions), list);
    assert.equal(list.length, 3);
    assert.deepEqual(list[0], {
      tool: 'code_execution', input: { code: 'print(6 * 7)' }, stdout: '42\n', stderr: '', return_code: 0, error_code: null, files: [],
    });
    assert.deepEqual(list[1].files, ['f.txt']);
    const { file_id } = message.otari_code_executions[1].files[0];
    assert.equal(await (await client.files.content(file_id)).text(), 'x');
    assert.equal(list[2].return_code, 3);
    const next = await client.chat.completions.create({
      model: model.replace(/:.*/, ':text'),
      messages: [...body.messages, message, { role: 'user', content: 'Thank you.' }],
    });
    assert.equal(typeof next.choices[0].message.content, 'string');
    assert.equal(next.choices[0].message.otari_code_executions, undefined);
  }
});

test('an uploaded CSV becomes a chart that is found by listing files', async (t) => {
  if (!skipWithoutSandbox(t, server)) await journey(false);
});
test('the same, streamed', async (t) => {
  if (!skipWithoutSandbox(t, server)) await journey(true);
});

test("errors are the client's own types", async () => {
  const wrong = new OpenAI({ apiKey: 'gw-wrong', baseURL: `${server.url}/v1`, maxRetries: 0 });
  const cases = [
    [() => wrong.chat.completions.create(ask('a')), OpenAI.AuthenticationError],
    [() => client.chat.completions.create(ask('a', { model: 'nobody:x' })), OpenAI.NotFoundError],
    [() => client.chat.completions.create({ ...ask('a'), messages: 'no list', tools: [CODE] }), OpenAI.BadRequestError],
    [() => client.chat.completions.create(ask('a', { model: 'fake:err-429' })), OpenAI.RateLimitError],
    [() => client.chat.completions.create(ask('a', { model: 'fake:err-400' })), OpenAI.BadRequestError],
    [() => client.chat.completions.create(ask('a', { model: 'fake:err-500' })), OpenAI.InternalServerError],
    [() => client.responses.create({ model: 'fake:text', input: 'a', previous_response_id: 'resp_none' }), OpenAI.NotFoundError],
    [() => client.files.retrieve('file-none'), OpenAI.NotFoundError],
  ];
  for (const [call, type] of cases) {
    const error = await call().then(() => assert.fail(`no ${type.name}`), (e) => e);
    assert.ok(error instanceof type, `${type.name} expected: ${error?.stack}`);
    assert.equal(typeof error.error?.message, 'string', JSON.stringify(error.error));
    assert.ok(error.requestID, 'no request id');
  }
});

test('an error in the middle of a stream reaches the client', async () => {
  const error = await client.chat.completions
    .stream(ask('a', { model: 'fake:error-event' }))
    .finalChatCompletion()
    .then(() => assert.fail('no error'), (e) => e);
  assert.ok(error instanceof OpenAI.APIError, error?.stack);
});

test('models are listed', async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes('demo:chart-1'), `${ids}`);
});
