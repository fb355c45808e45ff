"""The JSON schema of scene files: the declared classes, with units and sentences of their pages.

    python docs/_ext/scene_schema.py

writes studies/bundled/scene.schema.json, which `adjsim schema` prints and bundled scenes name, from
`studies/scene/declared.py`, `docs/scene_files.md` and the pages in its folder. Editors read draft 7
at most, so a list of n equal numbers has one `items`; TOML has no null, so what may be None may be
left out.
"""

import dataclasses
import json
import re
from pathlib import Path

from pydantic import TypeAdapter

from studies.scene import declared
from studies.scene.files import SCHEMA
from studies.scene.takes import COPIED


ENTRY = Path(__file__).resolve().parents[1] / "scene_files.md"
PAGES = {page.stem: page.read_text("utf-8") for page in sorted(ENTRY.with_suffix("").glob("*.md"))}
DRAFT = "http://json-schema.org/draft-07/schema#"
SECTIONS = {
    "_Body": "Keys of every body with a mesh",
    "_Obstacle": "Keys of every obstacle",
    "_Observation": "Keys of every observation",
    "_Law": "Law of contact",
    "Contact": "Contacts",
    "_Joint": "Keys of every joint",
    "_Framed": "Keys of welds, hinges and sliders",
    "_Driven": "Keys of hinges and sliders",
    **{f"{kind}Joint": f"{kind} joint" for kind in ("Ball", "Pin")},
    "OwnForce": "Own force",
    "OwnObservation": "Own residuals",
    **{f"{kind}Obstacle": f"{kind} obstacle" for kind in ("Plane", "Sphere", "Box", "Capsule")},
}
# These have no section of their own in the manual: some only hold other tables, some have two keys
# that are described with the table above them, and these joints add no keys.
NO_SECTION = (
    "Scene", "SceneFile", "Box", "Plane", "Ball", "WeldJoint", "HingeJoint", "SliderJoint",
)  # fmt: skip
CLASSES = {
    name: cls
    for name, cls in vars(declared).items()
    if dataclasses.is_dataclass(cls) and cls.__module__ == declared.__name__
}
# Of tables whose kind is never left out: it is what distinguishes them.
WITH_KIND = ("bodies", "joints")


def rows(cls):
    """Return the rows of the page's table of a class: keys, and the cells behind them."""
    title = SECTIONS.get(cls.__name__, cls.__name__)
    (section,) = re.findall(
        rf"^#+ {re.escape(title)}$(.*?)(?=^#|\Z)", "\n".join(PAGES.values()), re.M | re.S
    )
    cells = {}
    for line in section.splitlines():
        key = re.match(r"\| `(\w+)` \|", line)
        if key:
            cells.setdefault(key[1], [cell.strip() for cell in line.split("|")[2:-1]])
        elif cells and not line.startswith("|"):
            break
    return cells


def sentences(cls):
    """Return what the page says of each key of a class and its bases: value with unit, meaning."""
    texts = {}
    for base in reversed(cls.__mro__):
        if base.__name__ in CLASSES and base.__name__ not in NO_SECTION:
            for key, (value, default, meaning) in rows(base).items():
                if key != "kind":
                    ending = {"required": "", "–": ""}.get(default, f"; default: {default}")
                    texts[key] = plain(f"{meaning or key}: {value}{ending}")
    return texts


def plain(text):
    """Return a cell without links and backticks."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("`", "")


def described(text, node):
    """Return a schema with a description; beside a reference it would be ignored in draft 7."""
    reference = {"allOf": [{"$ref": node.pop("$ref")}]} if "$ref" in node else {}
    return {"description": text, **node, **reference}


def simplified(node):
    """Return a schema without titles, null and what draft 7 does not know."""
    if isinstance(node, list):
        return [simplified(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {
        "anyOf" if key == "oneOf" else key: simplified(value)
        for key, value in node.items()
        if key != "discriminator"
        and not (key == "title" and isinstance(value, str))
        and not (key == "default" and value is None)
    }
    if "prefixItems" in out:
        first, *others = out.pop("prefixItems")
        assert all(other == first for other in others)
        out["items"] = first
    if "anyOf" in out:
        choices = [choice for choice in out.pop("anyOf") if choice != {"type": "null"}]
        out |= choices[0] if len(choices) == 1 else {"anyOf": choices}
    return out


def schema():
    """Return the schema of a scene file."""
    tables = simplified(TypeAdapter(declared.SceneFile).json_schema())
    properties, definitions = tables["properties"], tables["$defs"]
    for name, definition in definitions.items():
        for key, text in sentences(CLASSES[name]).items():
            definition["properties"][key] = described(text, definition["properties"][key])
    for named in WITH_KIND:
        for choice in properties[named]["additionalProperties"]["anyOf"]:
            definition = definitions[choice["$ref"].rpartition("/")[2]]
            definition["required"] = ["kind", *definition.get("required", ())]
    # A take has all keys of a scene that differ in it, and of a body only some of its keys.
    keys = {key: {"type": "object"} for key in COPIED}
    keys |= {key: properties[key] for key in ("observations", "free", "truth")}
    take = {"type": "object", "properties": {**keys, "validate": {"type": "boolean"}}}
    properties["takes"] = {"type": "object", "additionalProperties": take}
    rows_of_tables = r"^\| `\[?(\w+).*?` \| (.*) \|$"
    for name, text in re.findall(rows_of_tables, ENTRY.read_text("utf-8"), re.MULTILINE):
        properties[name] = described(plain(text), properties[name])
    return {"$schema": DRAFT, **tables}


def text_of(node, depth=4):
    """Return a schema as JSON with one line for each key of a table, so that changes merge."""
    if not depth or not isinstance(node, dict):
        return json.dumps(node, ensure_ascii=False)
    lines = (f"{json.dumps(key)}: {text_of(value, depth - 1)}" for key, value in node.items())
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    SCHEMA.write_text(f"{text_of(schema())}\n", "utf-8")
