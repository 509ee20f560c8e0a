"""A chart of a CSV file with Anthropic's SDK, whatever model draws it

    pip install anthropic
    KEY=gw-… python3 anthropic_chart.py [sales.csv]     OTARI=http://127.0.0.1:8000 MODEL=demo:chart-1
"""
import os
import pathlib
import sys

import anthropic

client = anthropic.Anthropic(base_url=os.environ.get("OTARI", "http://127.0.0.1:8000"), api_key=os.environ["KEY"])
path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "sales.csv")

csv = client.beta.files.upload(file=(path.name, path.read_bytes(), "text/csv"))

with client.beta.messages.stream(
    model=os.environ.get("MODEL", "demo:chart-1"),
    max_tokens=8192,
    betas=["code-execution-2025-08-25", "files-api-2025-04-14"],
    tools=[{"type": "code_execution_20250825", "name": "code_execution"}],
    messages=[{
        "role": "user",
        "content": [
            {
                "type": "text",
                "text": f"Draw a bar chart of {path.name} and save it as chart.png; "
                        "where matplotlib is missing, write chart.svg by hand.",
            },
            {"type": "container_upload", "file_id": csv.id},
        ],
    }],
) as stream:
    for piece in stream.text_stream:
        print(piece, end="", flush=True)
    message = stream.get_final_message()
print()

for block in message.content:
    # code_execution_tool_result, bash_code_execution_tool_result: what ran, and the files that it made
    if not block.type.endswith("code_execution_tool_result"):
        continue
    made = getattr(block.content, "content", None)
    for output in made if isinstance(made, list) else []:
        name = pathlib.Path(client.beta.files.retrieve_metadata(output.file_id).filename).name
        client.beta.files.download(output.file_id).write_to_file(name)
        print(f"{name} is here ({output.file_id})")
        client.beta.files.delete(output.file_id)
client.beta.files.delete(csv.id)
