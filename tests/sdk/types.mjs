// types.mjs - are these blocks what the declarations of Anthropic's client say they are?
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

// TypeScript refuses a literal with a member too many, one too few, or of another type.
export function assertTypes(label, blocks) {
  const release = label.replace('.', '-');
  const types = `anthropic-${release}/resources/beta/messages/messages`;
  const file = `types-${release}.mts`;
  // This release says that a server_tool_use always has a caller; servers leave it out.
  const checked = release === '0-71' ? blocks.filter((block) => block.type !== 'server_tool_use') : blocks;
  writeFileSync(
    new URL(file, import.meta.url),
    `import type { BetaContentBlock } from '${types}';\n` +
      `export const blocks: BetaContentBlock[] = ${JSON.stringify(checked, null, 1)};\n`,
  );
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022'];
  const run = spawnSync(process.execPath, [tsc, ...flags, file], { cwd: new URL('.', import.meta.url), encoding: 'utf8' });
  assert.equal(run.status, 0, run.stdout + run.stderr);
}
