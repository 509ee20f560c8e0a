// anthropic.mjs - the tests of Anthropic's client, for one release of it
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { CSV, assertPicture, skipWithoutSandbox, startServer } from './server.mjs';
import { assertTypes } from './types.mjs';

const CODE = { type: 'code_execution_20250825', name: 'code_execution' };
const BETAS = ['code-execution-2025-08-25', 'files-api-2025-04-14'];

const STEPS = [
  'bash: echo hi; echo made > out.txt',
  'edit: {"command":"create","path":"f","file_text":"a\\nb\\n"}',
  'edit: {"command":"view","path":"f"}',
  'edit: {"command":"str_replace","path":"f","old_str":"b","new_str":"c"}',
  'edit: {"command":"view","path":"nothing"}',
  'edit: {"command":"undo_edit","path":"f"}',
  "print(open('f').read()[2])",
];

// Ids are new for every answer; everything else must be the same.
const withoutIds = (content) =>
  JSON.parse(JSON.stringify(content).replace(/(msg_|otari_srvtoolu_|toolu_|call_|file-)[0-9a-f]{32}/g, '$1'));

export function anthropicTests(label, { Anthropic, toFile }) {
  let server, client;

  before(async () => {
    server = await startServer();
    client = new Anthropic({ apiKey: server.key, baseURL: server.url, maxRetries: 0 });
  });
  after(async () => await server?.stop());

  const named = (name) => `${label}: ${name}`;
  const ask = (prompt, more = {}) => ({
    model: 'demo:chart-1',
    max_tokens: 1024,
    messages: [{ role: 'user', content: prompt }],
    ...more,
  });

  for (const model of ['demo:chart-1', 'claude:text']) {
    test(named(`a plain chat with ${model}, whole and streamed`), async () => {
      const whole = await client.messages.create(ask('Hello there', { model }));
      assert.equal(whole.type, 'message');
      assert.equal(whole.role, 'assistant');
      assert.equal(whole.stop_reason, 'end_turn');
      assert.match(whole.content[0].text, /Hello there/);
      assert.ok(whole.usage.input_tokens > 0 && whole.usage.output_tokens > 0);

      let text = '';
      const stream = client.messages.stream(ask('Hello there', { model }));
      stream.on('text', (piece) => (text += piece));
      const final = await stream.finalMessage();
      assert.deepEqual(final.content[0].text, whole.content[0].text);
      assert.equal(text, whole.content[0].text);
      assert.equal(final.stop_reason, 'end_turn');
      assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
    });
  }

  test(named("a client's own tool, whole and streamed"), async () => {
    const tools = [{ name: 'get_time', description: 'the time', input_schema: { type: 'object', properties: { zone: { type: 'string' } } } }];
    for (const model of ['fake:client', 'claude:client']) {
      const whole = await client.messages.create(ask('What time is it?', { model, tools }));
      const streamed = await client.messages.stream(ask('What time is it?', { model, tools })).finalMessage();
      for (const message of [whole, streamed]) {
        assert.equal(message.stop_reason, 'tool_use');
        const use = message.content.find((block) => block.type === 'tool_use');
        assert.equal(use.name, 'get_time');
        assert.deepEqual(use.input, { zone: 'UTC' });
      }
      const use = whole.content.find((block) => block.type === 'tool_use');
      const next = await client.messages.create({
        ...ask('', { model, tools }),
        messages: [
          { role: 'user', content: 'What time is it?' },
          { role: 'assistant', content: whole.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'noon' }] },
        ],
      });
      assert.match(next.content.at(-1).text, /Result: noon/);
    }
  });

  async function journey(streamed) {
    const file = await client.beta.files.upload({
      file: await toFile(Buffer.from(CSV), 'sales.csv', { type: 'text/csv' }),
    });
    assert.equal(file.type, 'file');
    assert.equal(file.filename, 'sales.csv');
    assert.equal(file.size_bytes, CSV.length);

    const body = {
      model: 'demo:chart-1',
      max_tokens: 4096,
      betas: BETAS,
      tools: [CODE],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Draw a chart of sales.csv.' },
            { type: 'container_upload', file_id: file.id },
          ],
        },
      ],
    };
    const message = streamed
      ? await client.beta.messages.stream(body).finalMessage()
      : await client.beta.messages.create(body);
    const use = message.content.find((block) => block.type === 'server_tool_use');
    const result = message.content.find((block) => block.type === 'code_execution_tool_result');
    assert.ok(use && result, JSON.stringify(message, null, 1));
    assert.equal(use.name, 'code_execution');
    assert.match(use.input.code, /import csv/);
    assert.equal(result.tool_use_id, use.id);
    assert.equal(result.content.type, 'code_execution_result', JSON.stringify(result));
    assert.equal(result.content.return_code, 0, JSON.stringify(result));
    assert.match(result.content.stdout, /sales\.csv: 4 rows, 2 columns/);
    assert.equal(message.stop_reason, 'end_turn');
    assert.ok(!message.content.some((block) => block.type === 'tool_use'));
    assert.match(message.content.at(-1).text, /chart/);

    const output = result.content.content[0];
    assert.equal(output.type, 'code_execution_output');
    const meta = await client.beta.files.retrieveMetadata(output.file_id);
    assert.match(meta.filename, /^chart\.(png|svg)$/);
    assert.equal(meta.downloadable, true);
    const download = await client.beta.files.download(output.file_id);
    const bytes = Buffer.from(await download.arrayBuffer());
    assert.equal(bytes.length, meta.size_bytes);
    assertPicture(bytes);

    // What was said goes back as it was said.
    const again = await client.beta.messages.create({
      ...body,
      messages: [
        ...body.messages,
        { role: 'assistant', content: message.content },
        { role: 'user', content: 'Thank you.' },
      ],
    });
    assert.match(again.content.at(-1).text, /Thank you/);

    await client.beta.files.delete(output.file_id);
    await client.beta.files.delete(file.id);
  }

  test(named('an uploaded CSV becomes a chart that is downloaded by its id'), async (t) => {
    if (!skipWithoutSandbox(t, server)) await journey(false);
  });
  test(named('the same, streamed'), async (t) => {
    if (!skipWithoutSandbox(t, server)) await journey(true);
  });

  test(named('a computation, whole and streamed, in the same blocks'), async (t) => {
    if (skipWithoutSandbox(t, server)) return;
    const body = ask('Compute 12 * 34 with code.', { tools: [CODE], betas: BETAS });
    const whole = await client.beta.messages.create(body);
    const streamed = await client.beta.messages.stream(body).finalMessage();
    const kinds = (message) => message.content.map((block) => block.type);
    assert.deepEqual(kinds(streamed), kinds(whole));
    for (const message of [whole, streamed]) {
      const result = message.content.find((block) => block.type === 'code_execution_tool_result');
      assert.equal(result.content.stdout, '408\n');
    }
  });

  test(named('bash and the text editor, whole and streamed, in their own blocks'), async (t) => {
    if (skipWithoutSandbox(t, server)) return;
    const shown = [];
    for (const model of ['fake:parallel', 'fake:steps', 'claude:steps']) {
      const body = ask(`run: ${STEPS.join('\n---\n')}`, { model, tools: [CODE], betas: BETAS });
      const headers = { 'otari-code-execution': 'otari' };
      const whole = await client.beta.messages.create(body, { headers });
      const streamed = await client.beta.messages.stream(body, { headers }).finalMessage();
      const { parsed_output, ...message } = streamed; // the accumulator's own
      assert.deepEqual(withoutIds(message), withoutIds(whole), model);
      for (const { content } of [whole, streamed]) {
        const pairs = content.filter((block) => block.type !== 'text');
        assert.deepEqual(pairs.map((block) => block.type).slice(0, 4), [
          'server_tool_use', 'bash_code_execution_tool_result',
          'server_tool_use', 'text_editor_code_execution_tool_result',
        ]);
        for (let i = 0; i < pairs.length; i += 2) {
          assert.equal(pairs[i + 1].tool_use_id, pairs[i].id);
          assert.equal(pairs[i + 1].type, `${pairs[i].name}_tool_result`);
        }
        const results = pairs.filter((block) => block.tool_use_id).map((block) => block.content);
        assert.equal(results[0].stdout, 'hi\n');
        assert.equal(results[0].content[0].type, 'bash_code_execution_output');
        assert.equal(results[1].is_file_update, false);
        assert.equal(results[2].content, 'a\nb\n');
        assert.deepEqual(results[3].lines, [' a', '-b', '+c']);
        assert.equal(results[4].error_code, 'file_not_found');
        assert.equal(results[5].error_code, 'invalid_tool_input');
        assert.equal(results[6].stdout, 'c\n');
        assert.equal(results.length, STEPS.length);
      }
      const again = await client.beta.messages.create({
        ...ask('', { model: 'claude:text', tools: [CODE], betas: BETAS }),
        messages: [...body.messages, { role: 'assistant', content: streamed.content }, { role: 'user', content: 'Thank you.' }],
      });
      assert.match(again.content.at(-1).text, /Thank you/);
      shown.push(...[...whole.content, ...streamed.content].filter((block) => block.type !== 'text'));
    }
    assertTypes(label, shown);
  });

  test(named('code is seen while it is written, and ends as the whole answer'), async (t) => {
    if (skipWithoutSandbox(t, server)) return;
    const tools = [CODE, { name: 'get_time', description: 'the time', input_schema: { type: 'object' } }];
    const headers = { 'otari-code-execution': 'otari' };
    const program = 'text = "é 北京 😀 \\ \"quoted\""\nprint(len(text))\n# and a long comment, for many pieces';
    for (const [model, prompt] of [
      ['fake:tool', `run: ${program}`],
      ['claude:tool', `run: ${program}`],
      ['fake:parallel', 'run: print(1)\n---\nprint(2)\n---\nraise SystemExit(3)'],
      ['claude:parallel', 'run: print(1)\n---\nprint(2)'],
      ['fake:mixed', 'run: print(1)'],
      ['claude:mixed', 'run: print(1)'],
      ['fake:badjson', `run: ${program}`],
      ['fake:length', `run: ${program}`],
      ['answers:length', `run: ${program}`],
    ]) {
      const body = ask(prompt, { model, tools, betas: BETAS });
      const whole = await client.beta.messages.create(body, { headers });
      let pieces = 0;
      const stream = client.beta.messages.stream(body, { headers });
      stream.on('inputJson', (piece, snapshot) => {
        pieces++;
        assert.equal(typeof snapshot, 'object');
      });
      const final = await stream.finalMessage();
      assert.deepEqual(withoutIds(final.content), withoutIds(whole.content), model);
      assert.equal(final.stop_reason, whole.stop_reason, model);
      assert.ok(pieces > 1, `${model}: ${pieces}`);
      const use = whole.content.find((block) => block.type === 'server_tool_use');
      if (prompt.endsWith(program)) assert.ok(program.startsWith(use.input.code) && use.input.code.length > 40, model);
      whole.content.forEach((block, i) => {
        if (block.type === 'server_tool_use') assert.equal(whole.content[i + 1].tool_use_id, block.id, model);
      });
    }
  });

  test(named('a call that breaks off is whole before the error'), async (t) => {
    if (skipWithoutSandbox(t, server)) return;
    const body = ask('run: print(1) # and a long comment, for many pieces', { model: 'fake:tool-cut', tools: [CODE], betas: BETAS });
    let last = null;
    const stream = client.beta.messages.stream(body);
    stream.on('streamEvent', (event, snapshot) => (last = structuredClone(snapshot)));
    await assert.rejects(stream.finalMessage());
    assert.deepEqual(last.content.map((block) => block.type), ['server_tool_use', 'code_execution_tool_result']);
    assert.equal(typeof last.content[0].input.code, 'string');
    assert.equal(last.content[1].content.error_code, 'invalid_tool_input');
  });

  test(named('files are listed page by page and deleted'), async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) {
      const file = await client.beta.files.upload({ file: await toFile(Buffer.from(`${i}`), `n${i}.txt`) });
      ids.push(file.id);
    }
    const seen = [];
    for await (const file of client.beta.files.list({ limit: 2 })) seen.push(file.id);
    for (const id of ids) assert.ok(seen.includes(id), `${id} is not listed`);
    assert.equal(new Set(seen).size, seen.length, 'listed twice');
    for (const id of ids) await client.beta.files.delete(id);
    await assert.rejects(client.beta.files.retrieveMetadata(ids[0]), Anthropic.NotFoundError);
  });

  test(named("errors are the client's own types"), async () => {
    const wrong = new Anthropic({ apiKey: 'gw-wrong', baseURL: server.url, maxRetries: 0 });
    const cases = [
      [() => wrong.messages.create(ask('a')), Anthropic.AuthenticationError],
      [() => client.messages.create(ask('a', { model: 'nobody:x' })), Anthropic.NotFoundError],
      [() => client.messages.create({ ...ask('a'), messages: 'no list' }), Anthropic.BadRequestError],
      [() => client.messages.create(ask('a', { model: 'fake:err-429' })), Anthropic.RateLimitError],
      [() => client.messages.create(ask('a', { model: 'claude:err-429' })), Anthropic.RateLimitError],
      [() => client.messages.create(ask('a', { model: 'claude:err-400' })), Anthropic.BadRequestError],
      [() => client.messages.create(ask('a', { model: 'claude:err-500' })), Anthropic.InternalServerError],
      [() => client.beta.files.retrieveMetadata('file-none'), Anthropic.NotFoundError],
    ];
    for (const [call, type] of cases) {
      const error = await call().then(() => assert.fail(`no ${type.name}`), (e) => e);
      assert.ok(error instanceof type, `${type.name} expected: ${error?.stack}`);
      assert.equal(typeof error.error?.error?.message, 'string', JSON.stringify(error.error));
      assert.equal(error.error.type, 'error');
    }
  });

  test(named('an error in the middle of a stream reaches the client'), async () => {
    for (const model of ['claude:error-event', 'fake:error-event']) {
      const error = await client.messages
        .stream(ask('a', { model }))
        .finalMessage()
        .then(() => assert.fail(`${model}: no error`), (e) => e);
      assert.ok(error instanceof Anthropic.APIError, `${model}: ${error?.stack}`);
    }
  });

  test(named('models are listed'), async () => {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert.ok(ids.includes('demo:chart-1'), `${ids}`);
  });
}
