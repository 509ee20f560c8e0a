// What real services once answered, replayed as upstream, read through the gateway by every client
//
// The recordings are not part of the project: OTARI_RECORDED names their folder (else ../shared/data/recorded).
// Without it the test says that it was skipped.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { after, before, test } from 'node:test';

import Anthropic from 'anthropic-current';
import OpenAI from 'openai';

import { startServer } from './server.mjs';

const root = process.env.OTARI_CHECKOUT ?? process.cwd();
const dir = process.env.OTARI_RECORDED ?? resolve(root, '../shared/data/recorded');
const PROVIDERS = { chat: 'fake', messages: 'claude', responses: 'answers' };

function files(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

// Which wire a recording is in, by its own words.
function wireOf(text) {
  const head = text.slice(0, 20000);
  if (/"object"\s*:\s*"chat\.completion/.test(head)) return 'chat';
  if (/"type"\s*:\s*"message(_start)?"/.test(head) && /"role"\s*:\s*"assistant"/.test(head) && !/"object"\s*:\s*"response"/.test(head)) return 'messages';
  if (/"object"\s*:\s*"response"|"type"\s*:\s*"response\./.test(head)) return 'responses';
  return null;
}

function recordings() {
  const found = [];
  for (const path of files(dir)) {
    const stream = path.endsWith('.chunks.txt');
    if (!stream && !path.endsWith('.json')) continue;
    const text = readFileSync(path, 'utf8');
    const wire = wireOf(text);
    const isError = /^\s*\{\s*"(error|detail)"/.test(text);
    if (wire === null || isError) continue;
    found.push({ name: relative(dir, path).replace(/(\.chunks\.txt|\.json)$/, ''), stream, wire });
  }
  return found;
}

let server, openai, anthropic;
const list = existsSync(dir) ? recordings() : [];
const skip = list.length === 0 ? `no recordings in ${dir}` : false;

before(async () => {
  if (skip) return;
  process.env.OTARI_RECORDED = dir;
  server = await startServer();
  openai = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: server.key, baseURL: server.url, maxRetries: 0 });
});
after(async () => await server?.stop());

const prompt = [{ role: 'user', content: 'hello' }];

// Each answers whether there was anything in it.
const clients = {
  chat: async (model, stream) => {
    const ask = { model, messages: prompt };
    const done = stream
      ? await openai.chat.completions.stream(ask).finalChatCompletion()
      : await openai.chat.completions.create(ask);
    const message = done.choices[0].message;
    assert.ok(done.choices[0].finish_reason, 'no finish_reason');
    for (const call of message.tool_calls ?? []) assert.ok(call.id && call.function.name, JSON.stringify(call));
    return Boolean(message.content || message.refusal || message.reasoning_content || message.tool_calls?.length);
  },
  messages: async (model, stream) => {
    const ask = { model, max_tokens: 1000, messages: prompt };
    const done = stream ? await anthropic.messages.stream(ask).finalMessage() : await anthropic.messages.create(ask);
    assert.equal(done.type, 'message');
    assert.ok(done.stop_reason, 'no stop_reason');
    for (const block of done.content) if (block.type === 'tool_use') assert.equal(typeof block.input, 'object');
    return done.content.length > 0;
  },
  responses: async (model, stream) => {
    const ask = { model, input: 'hello', store: false };
    const done = stream ? await openai.responses.stream(ask).finalResponse() : await openai.responses.create(ask);
    assert.equal(done.object, 'response');
    assert.ok(['completed', 'incomplete'].includes(done.status), done.status);
    return done.output.length > 0;
  },
};

for (const client of Object.keys(clients)) {
  for (const wire of Object.keys(PROVIDERS)) {
    const mine = list.filter((r) => r.wire === wire);
    test(`recorded answers of ${wire} services, read by a ${client} client`, { skip: skip || mine.length === 0 }, async () => {
      const broken = [];
      let empty = 0;
      for (const r of mine) {
        try {
          const provider = r.name.startsWith('mistral/') ? 'mistral' : PROVIDERS[wire];
          if (!(await clients[client](`${provider}:recorded/${r.name}`, r.stream))) empty++;
        } catch (error) {
          // an event of the service's own that its own client does not know either
          if (client === wire && /Unhandled response stream event/.test(error.message)) continue;
          broken.push(`${r.name} (${r.stream ? 'stream' : 'whole'}): ${String(error.message).slice(0, 200)}`);
        }
      }
      console.log(`${wire} -> ${client}: ${mine.length} recordings, ${empty} empty, ${broken.length} broken`);
      assert.deepEqual(broken, []);
    });
  }
}
