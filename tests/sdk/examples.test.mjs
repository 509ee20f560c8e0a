// The programs of docs/examples, as they are, against a real daemon; those in Python are compiled only
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';

import { assertPicture, skipWithoutSandbox, startServer } from './server.mjs';

const source = join(process.env.OTARI_CHECKOUT ?? process.cwd(), 'docs/examples');
// Their modules are looked for beside them, Anthropic's by its own name.
const here = fileURLToPath(new URL('examples', import.meta.url));
const PROGRAMS = readdirSync(source).filter((name) => name.endsWith('.mjs'));
let server;

before(async () => {
  rmSync(here, { recursive: true, force: true });
  cpSync(source, here, { recursive: true });
  mkdirSync(join(here, 'node_modules/@anthropic-ai'), { recursive: true });
  symlinkSync(fileURLToPath(new URL('node_modules/anthropic-current', import.meta.url)), join(here, 'node_modules/@anthropic-ai/sdk'));
  server = await startServer();
});
after(async () => {
  await server?.stop();
  rmSync(here, { recursive: true, force: true });
});

function run(program, cwd) {
  const env = { ...process.env, OTARI: server.url, KEY: server.key, MODEL: 'demo:chart-1' };
  const child = spawn(process.execPath, [join(here, program), join(here, 'sales.csv')], { cwd, env });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece) => (text += piece));
  child.stderr.setEncoding('utf8').on('data', (piece) => (text += piece));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, text })));
}

async function filesLeft() {
  const answer = await fetch(`${server.url}/v1/files`, { headers: { Authorization: `Bearer ${server.key}` } });
  return (await answer.json()).data;
}

test('there is a program for each SDK', () => {
  assert.deepEqual(PROGRAMS.sort(), ['anthropic-chart.mjs', 'openai-chart.mjs']);
});

for (const program of PROGRAMS) {
  test(`docs/examples/${program} brings a picture home and leaves no file behind`, async (t) => {
    if (skipWithoutSandbox(t, server)) return;
    const cwd = mkdtempSync(join(process.env.OTARI_TEST_TMP ?? tmpdir(), 'example-'));
    try {
      const { code, text } = await run(program, cwd);
      assert.equal(code, 0, text);
      assert.match(text, /^chart\.(png|svg) is here \(file-[0-9a-f]{32}\)$/m);
      const [name, ...more] = readdirSync(cwd);
      assert.match(name, /^chart\.(png|svg)$/);
      assert.deepEqual(more, []);
      assertPicture(readFileSync(join(cwd, name)));
      assert.deepEqual(await filesLeft(), []);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  });
}

test('those in Python can be compiled', () => {
  const programs = readdirSync(here).filter((name) => name.endsWith('.py'));
  assert.equal(programs.length, 2);
  for (const name of programs) {
    const done = spawnSync('python3', ['-m', 'py_compile', join(here, name)], { encoding: 'utf8' });
    assert.equal(done.status, 0, done.stderr);
  }
  assert.ok(existsSync(join(here, '__pycache__')));
});
