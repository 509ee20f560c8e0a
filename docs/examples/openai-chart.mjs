// A chart of a CSV file with OpenAI's SDK, whatever model draws it
//
//   npm install openai
//   KEY=gw-… node openai-chart.mjs [sales.csv]          OTARI=http://127.0.0.1:8000 MODEL=demo:chart-1
import { createReadStream, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: `${process.env.OTARI ?? 'http://127.0.0.1:8000'}/v1`, apiKey: process.env.KEY });
const path = process.argv[2] ?? 'sales.csv';

const csv = await client.files.create({ file: createReadStream(path), purpose: 'user_data' });

const stream = client.responses.stream({
  model: process.env.MODEL ?? 'demo:chart-1',
  store: false,
  include: ['code_interpreter_call.outputs'],
  tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: [csv.id] } }],
  input: `Draw a bar chart of ${basename(path)} and save it as chart.png; where matplotlib is missing, write chart.svg by hand.`,
});
stream.on('response.output_text.delta', ({ delta }) => process.stdout.write(delta));
const response = await stream.finalResponse();
console.log();

for (const call of response.output.filter((item) => item.type === 'code_interpreter_call')) {
  for (const output of call.outputs ?? []) {
    if (output.type === 'logs') console.log(output.logs);
    if (output.type !== 'image') continue;
    // …/files/ID/content
    const id = new URL(output.url).pathname.split('/').at(-2);
    const { filename } = await client.files.retrieve(id);
    const download = await client.files.content(id);
    writeFileSync(basename(filename), Buffer.from(await download.arrayBuffer()));
    console.log(`${filename} is here (${id})`);
    await client.files.delete(id);
  }
}
await client.files.delete(csv.id);
