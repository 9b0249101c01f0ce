"""The sentences of a file that a person reads: pages, comments, messages, descriptions of faults."""

import ast
import io
import re
import tokenize

CODE = (".h", ".cpp", ".cu", ".cuh", ".js")
QUOTED = (  # strings that others fixed: PyTorch's warning, names of zeroproof 0.2 that are read on
    "none of output has requires_grad=True, this checkpoint() is not necessary", "latitude")


def prose_of_page(text):
    """Sentences of a page: no blocks, tables, headings, code; a paragraph is one line."""
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.M | re.S)
    text = re.sub(r"^(?:\||#|<!--|!\[).*$", "", text, flags=re.M)
    text = re.sub(r"`[^`\n]*`", "Code", text)  # may begin a sentence
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", text, flags=re.M)
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def is_message(path):
    """Whether a person may read the file's strings: those of tests are data."""
    return "tests" not in path.split("/") and not path.startswith("examples/")


def without_quotes(strings):
    return [string for string in strings if string not in QUOTED]


def prose_of_code(text, with_strings):
    """Comments, and string literals where they are messages."""
    found = re.findall(r"//+(.*)$", text, re.M)
    if with_strings:
        text = re.sub(r'//.*$|kFormer\w+ = "[^"]*"', "", text, flags=re.M)  # an old name is read on
        text = re.sub(r'(?<=[^\\])"\s*\n\s*"', "", text)  # a sentence may go on in a second literal
        found += without_quotes(re.findall(r'"((?:\\.|[^"\\\n])*)"', text))
    return "\n".join(found)


def prose_of_python(text, with_strings):
    """Comments and docstrings, and strings where they are messages."""
    try:
        tree = ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, tokenize.TokenError):
        return ""
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    if with_strings:  # docstrings among them
        return "\n".join(found + without_quotes(
            node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return "\n".join(found + [ast.get_docstring(node) or "" for node in ast.walk(tree)
                              if isinstance(node, documented)])


def prose_of_faults(text):
    """What each fault is, and the reasons given for it; not the lines of the engine."""
    found = re.findall(r"^(?:fault [^:\n]+|reason|larger): (.*(?:\n    .*)*)", text, re.M)
    return "\n".join(re.sub(r"\s+", " ", sentence) for sentence in found)


def prose_of(path, text):
    if path.endswith(".md"):
        return prose_of_page(text)
    if path.endswith(CODE):
        return prose_of_code(text, is_message(path))
    if path.endswith(".py"):
        return prose_of_python(text, is_message(path))
    if path.endswith(".json"):
        return prose_of_code(text, True) if is_message(path) else ""
    if path.endswith(".faults"):
        return prose_of_faults(text)
    if path.endswith(("CMakeLists.txt", ".cmake")):
        return "\n".join(re.findall(r"#(.*)$", text, re.M))
    if path == "zp" or path.endswith(".sh"):
        help_text = re.findall(r"<<'END'\n(.*?)\nEND$", text, re.M | re.S)
        return "\n".join(help_text + re.findall(r"#(.*)$", text, re.M))
    return ""


def sentences(prose):
    """Of a page's prose."""
    return [sentence for paragraph in prose.split("\n\n")
            for sentence in re.split(r"(?<=[.!?:;]) +(?=[A-Z`(])", paragraph) if sentence.strip()]
