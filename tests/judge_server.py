"""A judge on loopback whose verdicts are by substring.

A statement is supported if the context holds it word for word, so the expected scores can be
counted by hand.
"""

import json
import re

from chat_server import OpenAIServer


class JudgeServer(OpenAIServer):
    """`answers` maps a question to the sentences its answer consists of (default: the passages do
    not answer it), `repaired` to those it is given once its citations were found wrong; `derived`
    an answer to the question it answers. Judgements of the questions in `broken` have another
    shape than was asked for. The model `noisy` supports nothing under other seeds than the first
    of a judgement."""

    def __init__(self):
        super().__init__()
        self.answers, self.repaired, self.derived = {}, {}, {}
        self.broken = set()

    def reply(self, body):
        model, output = body["model"], self.judged(body["messages"])
        if model == "verdict2":
            output = json.loads(
                re.sub(r'("(verdict|attributed|noncommittal)"): [01]', r"\1: 2", json.dumps(output))
            )
        elif model == "noisy" and body["seed"] >= 107:
            output = json.loads(
                re.sub(r'("(verdict|attributed)"): 1', r"\1: 0", json.dumps(output))
            )
        elif model == "evasive" and "noncommittal" in output:
            output["noncommittal"] = 1
        elif model == "drop" and "verdict" in str(output):
            output["statements"] = output["statements"][:1]
        elif model == "nostatements":
            output = {name: [] if isinstance(v, list) else v for name, v in output.items()}
        return output

    def judged(self, messages):
        if messages[0]["role"] == "system":
            return self.grounded(messages[1]["content"], is_repair=len(messages) > 2)
        prompt = messages[0]["content"]
        given = json.loads(prompt[prompt.rindex("\ninput: ") + 8 :].rpartition("\nOutput:")[0])
        if given.get("question") in self.broken:
            return {"another": "shape"}
        supported = lambda text: int(text in given["context"])  # noqa: E731
        if "atomicity" in given:
            return {"claims": sentences(given["response"])}
        if "response" in given:
            question = self.derived.get(given["response"], given["response"] + "?")
            return {"question": question, "noncommittal": 0}
        if "verify if the context was useful" in prompt:
            useful = any(s in given["context"] for s in sentences(given["answer"]))
            return {"reason": "by substring", "verdict": int(useful)}
        if "statements" in given:
            return {
                "statements": [
                    {"statement": s, "reason": "by substring", "verdict": supported(s)}
                    for s in given["statements"]
                ]
            }
        if "context" in given:
            return {
                "classifications": [
                    {"statement": s, "reason": "by substring", "attributed": supported(s)}
                    for s in sentences(given["answer"])
                ]
            }
        return {"statements": sentences(given["answer"])}

    def grounded(self, prompt, is_repair):
        question = prompt.rpartition("\n\nQuestion: ")[2]
        passages = re.findall(r'<passage id="(p\d+)">\n(.*?)\n</passage>', prompt, re.DOTALL)
        said = [
            {
                "text": text,
                "quote": text,
                "sources": [name for name, passage in passages if text in passage][:1] or ["p9"],
            }
            for text in (self.repaired if is_repair else self.answers).get(
                question, self.answers.get(question, [])
            )
        ]
        return {"found": bool(said), "sentences": said}


def sentences(text):
    return re.split(r"(?<=[.!?])\s+", text.strip())
