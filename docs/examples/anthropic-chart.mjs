// A chart of a CSV file with Anthropic's SDK, whatever model draws it
//
//   npm install @anthropic-ai/sdk
//   KEY=gw-… node anthropic-chart.mjs [sales.csv]       OTARI=http://127.0.0.1:8000 MODEL=demo:chart-1
import { createReadStream, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

import Anthropic, { toFile } from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: process.env.OTARI ?? 'http://127.0.0.1:8000', apiKey: process.env.KEY });
const path = process.argv[2] ?? 'sales.csv';

const csv = await client.beta.files.upload({ file: await toFile(createReadStream(path), basename(path), { type: 'text/csv' }) });

const stream = client.beta.messages.stream({
  model: process.env.MODEL ?? 'demo:chart-1',
  max_tokens: 8192,
  betas: ['code-execution-2025-08-25', 'files-api-2025-04-14'],
  tools: [{ type: 'code_execution_20250825', name: 'code_execution' }],
  messages: [
    {
      role: 'user',
      content: [
        {
          type: 'text',
          text: `Draw a bar chart of ${basename(path)} and save it as chart.png; where matplotlib is missing, write chart.svg by hand.`,
        },
        { type: 'container_upload', file_id: csv.id },
      ],
    },
  ],
});
stream.on('text', (piece) => process.stdout.write(piece));
const message = await stream.finalMessage();
console.log();

for (const block of message.content) {
  // code_execution_tool_result, bash_code_execution_tool_result: what ran, and the files that it made
  if (!block.type.endsWith('code_execution_tool_result')) continue;
  console.log(`${block.type}: ${block.content.return_code ?? block.content.error_code}`);
  for (const { file_id } of [block.content.content ?? []].flat()) {
    if (!file_id) continue;
    const { filename } = await client.beta.files.retrieveMetadata(file_id);
    const download = await client.beta.files.download(file_id);
    writeFileSync(basename(filename), Buffer.from(await download.arrayBuffer()));
    console.log(`${filename} is here (${file_id})`);
    await client.beta.files.delete(file_id);
  }
}
await client.beta.files.delete(csv.id);
