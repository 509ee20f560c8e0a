// The clients' own loops over tools, where the model calls the client's tool and ours in the same turns
//
// A program that uses such a loop knows nothing of who runs the code: it must come to its end with no case of its own.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import Anthropic071 from 'anthropic-0-71';
import AnthropicCurrent from 'anthropic-current';
import OpenAI from 'openai';

import { skipWithoutSandbox, startServer } from './server.mjs';

const DATED = { type: 'code_execution_20250825', name: 'code_execution' };
const BETAS = ['code-execution-2025-08-25', 'files-api-2025-04-14'];
const ZONE = { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] };
const PROMPT = 'run: print(6 * 7)';
const HERE = { headers: { 'otari-code-execution': 'otari' } };
let server, openai;
const anthropic = {};

before(async () => {
  server = await startServer();
  for (const [label, Anthropic] of [['0.71', Anthropic071], ['current', AnthropicCurrent]])
    anthropic[label] = new Anthropic({ apiKey: server.key, baseURL: server.url, maxRetries: 0 });
  openai = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => await server?.stop());

// The client's tool; notes what it is called with.
function clock() {
  const calls = [];
  const tell = (input) => {
    calls.push(input);
    return 'noon';
  };
  return { calls, tell };
}

// The model was sent both results, ours once.
async function assertBothResults(what) {
  const { body } = await (await fetch(`${server.fakeUrl.replace(/\/v1$/, '')}/_last`)).json();
  assert.ok(body.includes('noon'), `${what}: the client's result is not sent: ${body}`);
  const results = body.match(/(stdout|logs):(\\n|\s)*42/g) ?? [];
  assert.equal(results.length, 1, `${what}: the code's result: ${body}`);
}

for (const label of ['0.71', 'current']) {
  for (const model of ['fake:mixed', 'claude:mixed']) {
    for (const way of label === 'current' ? ['whole', 'streamed', 'eager'] : ['whole', 'streamed']) {
      test(`Anthropic ${label}: the tool runner, ${model}, ${way}`, async (t) => {
        if (skipWithoutSandbox(t, server)) return;
        const { calls, tell } = clock();
        const stream = way !== 'whole';
        const runner = anthropic[label].beta.messages.toolRunner(
          {
            model,
            stream,
            ...(way === 'eager' ? { runToolsEagerly: true } : {}), // calls run while the answer still comes
            max_tokens: 1024,
            max_iterations: 5,
            betas: BETAS,
            tools: [DATED, { name: 'get_time', description: 'the time', input_schema: ZONE, parse: (input) => input, run: tell }],
            messages: [{ role: 'user', content: PROMPT }],
          },
          HERE,
        );
        const messages = [];
        for await (const turn of runner) messages.push(stream ? await turn.finalMessage() : turn);
        assert.deepEqual(messages.map((m) => m.stop_reason), ['tool_use', 'end_turn']);
        const [first, last] = messages;
        const kinds = first.content.map((block) => block.type).filter((type) => type !== 'text');
        assert.deepEqual(kinds, ['server_tool_use', 'code_execution_tool_result', 'tool_use']);
        const result = first.content.find((block) => block.type === 'code_execution_tool_result');
        assert.equal(result.content.stdout, '42\n');
        assert.deepEqual(calls, [{ zone: 'UTC' }]);
        assert.match(last.content.at(-1).text, /noon/);
        await assertBothResults(model);
      });
    }
  }

  test(`Anthropic ${label}: rounds of code alone are one turn of the runner`, async (t) => {
    if (skipWithoutSandbox(t, server)) return;
    const { calls, tell } = clock();
    for (const stream of [false, true]) {
      const runner = anthropic[label].beta.messages.toolRunner({
        model: 'fake:rounds-3',
        stream,
        max_tokens: 1024,
        betas: BETAS,
        tools: [DATED, { name: 'get_time', description: 'the time', input_schema: ZONE, parse: (input) => input, run: tell }],
        messages: [{ role: 'user', content: 'go' }],
      });
      let turns = 0;
      for await (const turn of runner) {
        turns++;
        const { content, stop_reason } = stream ? await turn.finalMessage() : turn;
        assert.equal(stop_reason, 'end_turn');
        const printed = content.filter((block) => block.type === 'code_execution_tool_result').map((block) => block.content.stdout);
        assert.deepEqual(printed, ['1\n', '2\n', '3\n']);
      }
      assert.equal(turns, 1);
    }
    assert.deepEqual(calls, []);
  });
}

test('Anthropic current: the runner goes on by itself where a turn pauses', async (t) => {
  if (skipWithoutSandbox(t, server)) return;
  const reasons = [];
  const runner = anthropic.current.beta.messages.toolRunner({
    model: 'fake:forever',
    max_tokens: 1024,
    max_iterations: 2,
    max_tool_iterations: 2,
    betas: BETAS,
    tools: [DATED],
    messages: [{ role: 'user', content: 'go' }],
  });
  for await (const message of runner) reasons.push(message.stop_reason);
  assert.deepEqual(reasons, ['pause_turn', 'pause_turn']);
});

for (const model of ['fake:mixed', 'claude:mixed', 'answers:mixed']) {
  for (const stream of [false, true]) {
    test(`OpenAI: runTools, ${model}${stream ? ', streamed' : ''}`, async (t) => {
      if (skipWithoutSandbox(t, server)) return;
      const { calls, tell } = clock();
      const runner = openai.chat.completions.runTools({
        model,
        stream,
        messages: [{ role: 'user', content: PROMPT }],
        tools: [
          { type: 'code_execution' },
          { type: 'function', function: { name: 'get_time', parameters: ZONE, parse: JSON.parse, function: tell } },
        ],
      }, HERE);
      assert.match(await runner.finalContent(), /noon/);
      const [first, last, ...more] = runner.allChatCompletions();
      assert.deepEqual(more, []);
      assert.equal(first.choices[0].finish_reason, 'tool_calls');
      assert.deepEqual(first.choices[0].message.tool_calls.map((call) => call.function.name), ['get_time']);
      assert.equal(first.choices[0].message.otari_code_executions[0].stdout, '42\n');
      assert.equal(last.choices[0].finish_reason, 'stop');
      assert.deepEqual(calls, [{ zone: 'UTC' }]);
      assert.deepEqual(runner.messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
      await assertBothResults(model);
    });
  }
}

// As OpenAI's guide has it: what came goes back, with the outputs behind it, until no call is left.
async function loop(model, stored, tell) {
  const tools = [
    { type: 'code_interpreter', container: { type: 'auto' } },
    { type: 'function', name: 'get_time', parameters: ZONE, strict: false },
  ];
  const responses = [];
  let input = [{ role: 'user', content: PROMPT }];
  let previous;
  for (let i = 0; i < 5; i++) {
    const response = await openai.responses
      .stream({ model, tools, input, store: stored, previous_response_id: previous, include: ['code_interpreter_call.outputs'] }, HERE)
      .finalResponse();
    responses.push(response);
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) break;
    const outputs = calls.map((call) => ({
      type: 'function_call_output',
      call_id: call.call_id,
      output: tell(JSON.parse(call.arguments)),
    }));
    input = stored ? outputs : [...input, ...response.output, ...outputs];
    previous = stored ? response.id : undefined;
  }
  return responses;
}

for (const model of ['fake:mixed', 'claude:mixed', 'answers:mixed']) {
  for (const stored of [true, false]) {
    test(`OpenAI: a loop over responses.stream, ${model}, ${stored ? 'by previous_response_id' : 'with all that came'}`, async (t) => {
      if (skipWithoutSandbox(t, server)) return;
      const { calls, tell } = clock();
      const [first, last, ...more] = await loop(model, stored, tell);
      assert.deepEqual(more, []);
      const kinds = first.output.map((item) => item.type).filter((type) => type !== 'message');
      assert.deepEqual(kinds, ['code_interpreter_call', 'function_call']);
      const run = first.output.find((item) => item.type === 'code_interpreter_call');
      assert.deepEqual(run.outputs, [{ type: 'logs', logs: '42\n' }]);
      assert.deepEqual(calls, [{ zone: 'UTC' }]);
      assert.equal(last.status, 'completed');
      assert.match(last.output_text, /noon/);
      await assertBothResults(model);
    });
  }
}
