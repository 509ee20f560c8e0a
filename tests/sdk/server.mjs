// server.mjs - a real daemon with the demo model and the fake provider behind it, for one test file
//
// Nothing waits by sleeping: the programs say when they listen. stop() checks that the daemon ended
// with status 0 and logged nothing at WARN or ERROR.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const bin = process.env.OTARI_TEST_BIN;
const MASTER_KEY = 'master-key-of-the-client-tests';

// The user that the daemon drops to, when it is started by root.
function unprivileged() {
  if (process.getuid() !== 0) return null;
  const rows = readFileSync('/etc/passwd', 'utf8').split('\n').map((line) => line.split(':'));
  const row = rows.find((r) => r[0] === 'otari') ?? rows.find((r) => r[0] === 'nobody');
  return { name: row[0], uid: +row[2], gid: +row[3] };
}

// Resolves with the first match of `pattern` in what the program writes.
function start(program, args, pattern) {
  const child = spawn(join(bin, program), args, { stdio: ['ignore', 'pipe', 'pipe'] });
  child.text = '';
  const said = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${program} is not up: ${child.text}`)), 60000);
    const look = (piece) => {
      child.text += piece;
      const hit = pattern.exec(child.text);
      if (hit) {
        clearTimeout(timer);
        resolve(hit);
      }
    };
    child.stdout.setEncoding('utf8').on('data', look);
    child.stderr.setEncoding('utf8').on('data', look);
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`${program} ended (${code ?? signal}): ${child.text}`));
    });
  });
  return { child, said };
}

async function end(child) {
  const code = new Promise((resolve) => child.on('exit', (c, signal) => resolve(c ?? signal)));
  child.kill('SIGTERM');
  return await code;
}

export async function startServer({ expect = [] } = {}) {
  const demo = start('demo-model', ['-p', '0', '-d', '2'], /listening on (\S+)/);
  const fake = start('fake-provider', [], /listening on (\S+)/);
  const demoUrl = (await demo.said)[1];
  const fakeUrl = (await fake.said)[1];

  const dir = mkdtempSync(join(process.env.OTARI_TEST_TMP ?? tmpdir(), 'sdk-'));
  const user = unprivileged();
  if (user) chownSync(dir, user.uid, user.gid);
  chmodSync(dir, 0o755);
  writeFileSync(
    join(dir, 'otari.conf'),
    `host: 127.0.0.1
port: 0
admin_listen: "127.0.0.1:0"
state_dir: ${dir}
database_url: "sqlite:///${dir}/otari.db"
files_local_dir: ${dir}/files
master_key: ${MASTER_KEY}
sandbox_url: "local:"
log_format: json
${user ? `user: ${user.name}\n` : ''}providers:
  demo:
    provider_type: openai
    wire: chat
    api_base: ${demoUrl}
    api_key: none
    models: [chart-1]
  fake:
    provider_type: openai
    wire: chat
    api_base: ${fakeUrl}
    api_key: none
  mistral:
    provider_type: mistral
    wire: chat
    api_base: ${fakeUrl}
    api_key: none
  claude:
    provider_type: anthropic
    wire: messages
    api_base: ${fakeUrl}
    api_key: none
  answers:
    provider_type: openai
    wire: responses
    api_base: ${fakeUrl}
    api_key: none
`,
  );
  const otari = start('otari', ['-f', '-c', join(dir, 'otari.conf')], /"listening"[^\n]*"port":(\d+)/);
  const url = `http://127.0.0.1:${(await otari.said)[1]}`;
  const key = await makeKey(url);
  const sandbox = await sandboxState(url);
  const expected = sandbox === 'ready' ? expect : [...expect, 'sandbox refused'];

  return {
    url,
    fakeUrl,
    key,
    sandbox,
    async stop() {
      const code = await end(otari.child);
      await end(demo.child);
      await end(fake.child);
      rmSync(dir, { recursive: true, force: true });
      for (const line of otari.child.text.split('\n')) {
        if (/"level":"(warn|error)"/i.test(line) && !expected.some((text) => line.includes(text))) {
          assert.fail(`unexpected: ${line}`);
        }
      }
      assert.equal(code, 0, otari.child.text.slice(-4000));
    },
  };
}

async function makeKey(url) {
  const answer = await fetch(`${url}/api/v1/keys`, {
    method: 'POST',
    headers: { 'Otari-Key': MASTER_KEY, 'Content-Type': 'application/json' },
    body: '{"key_name":"client tests"}',
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return JSON.parse(text).key;
}

// "ready", or why the sandbox is not; its self-test may still be running.
async function sandboxState(url) {
  for (let i = 0; i < 600; i++) {
    const { sandbox } = await (await fetch(`${url}/health`)).json();
    if (sandbox !== 'testing') return sandbox;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return 'testing';
}

// Where user namespaces are missing the sandbox tests are skipped, unless they must run.
export function skipWithoutSandbox(t, server) {
  if (server.sandbox === 'ready') return false;
  if ((process.env.OTARI_TEST_REQUIRE ?? '').includes('sandbox')) assert.fail(`sandbox: ${server.sandbox}`);
  t.skip(`SKIPPED sandbox (${server.sandbox})`);
  return true;
}

export const CSV = 'month,revenue\nJan,120.5\nFeb,135\nMar,99\nApr,160\n';

// A picture, by its own first bytes.
export function assertPicture(bytes) {
  const png = bytes.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
  const svg = bytes.toString('utf8', 0, 4) === '<svg' && bytes.toString('utf8').trimEnd().endsWith('</svg>');
  assert.ok(png || svg, `no picture: ${bytes.toString('utf8', 0, 100)}`);
}
