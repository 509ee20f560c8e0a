"""A chart of a CSV file with OpenAI's SDK, whatever model draws it

    pip install openai
    KEY=gw-… python3 openai_chart.py [sales.csv]        OTARI=http://127.0.0.1:8000 MODEL=demo:chart-1
"""
import os
import pathlib
import sys
import urllib.parse

import openai

client = openai.OpenAI(base_url=os.environ.get("OTARI", "http://127.0.0.1:8000") + "/v1", api_key=os.environ["KEY"])
path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "sales.csv")

csv = client.files.create(file=(path.name, path.read_bytes(), "text/csv"), purpose="user_data")

with client.responses.stream(
    model=os.environ.get("MODEL", "demo:chart-1"),
    store=False,
    include=["code_interpreter_call.outputs"],
    tools=[{"type": "code_interpreter", "container": {"type": "auto", "file_ids": [csv.id]}}],
    input=f"Draw a bar chart of {path.name} and save it as chart.png; "
          "where matplotlib is missing, write chart.svg by hand.",
) as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            print(event.delta, end="", flush=True)
    response = stream.get_final_response()
print()

for call in response.output:
    if call.type != "code_interpreter_call":
        continue
    for output in call.outputs or []:
        if output.type == "logs":
            print(output.logs)
        elif output.type == "image":
            file_id = urllib.parse.urlsplit(output.url).path.split("/")[-2]  # …/files/ID/content
            name = pathlib.Path(client.files.retrieve(file_id).filename).name
            client.files.content(file_id).write_to_file(name)
            print(f"{name} is here ({file_id})")
            client.files.delete(file_id)
client.files.delete(csv.id)
