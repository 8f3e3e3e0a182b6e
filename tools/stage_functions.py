"""Stages one folder for each function: main.py, agent/, prompts/, requirements.txt, services.toml, and nothing else.

functions-framework puts only the source file's folder on the path, and the build compiles every file in it; so each
function gets a whole folder of its own, in which its frame stands at the root as main.py. Of agent/ it gets what the
frame leads to by its imports and theirs.

Run: python tools/stage_functions.py --out build [--only on_log_event ...] [--services FILE] [--policy FILE] [--otel]

It needs nothing but Python; deploy.sh calls it before anything is installed.
"""

import argparse
import ast
import shutil
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TELLS = "on_incident"
"""The function that tells people, by the extra ``notify`` too."""

NOTIFY = "requirements-notify.txt"
OTEL = "requirements-otel.txt"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def functions() -> tuple[str, ...]:
    """Return the names of the functions: each file of functions/ defines one of its own name."""
    return tuple(sorted(path.stem for path in (ROOT / "functions").glob("*.py")))


def stage(
    name: str, out: Path, *, services: Path | None = None, policy: Path | None = None, otel: bool = False
) -> Path:
    """Stage one function afresh.

    Args:
        name: One of :func:`functions`.
        out: Holds one folder for each function.
        services: The watched services; set ``SERVICES=services.toml`` with it.
        policy: The policy; set ``POLICY=policy.toml`` with it.
        otel: Whether it gets what sends traces; set ``OTEL_EXPORTER_OTLP_ENDPOINT`` with it.

    Returns:
        The function's folder.
    """
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(_entry_point(name), folder / "main.py")
    for needed in needed_files(folder / "main.py"):
        copy = folder / needed.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(needed, copy)
    shutil.copytree(ROOT / "prompts", folder / "prompts", ignore=LEFT_OUT)
    shutil.copy(ROOT / "requirements.txt", folder)
    for extra in (*([NOTIFY] if name == TELLS else []), *([OTEL] if otel else [])):
        shutil.copy(ROOT / extra, folder)
        with (folder / "requirements.txt").open("a", encoding="utf-8") as requirements:
            requirements.write(f"\n-r {extra}\n")
    for source, target in ((services, "services.toml"), (policy, "policy.toml")):
        if source is not None:
            shutil.copy(source, folder / target)
    return folder


def _entry_point(name: str) -> Path:
    """Return the file of a function, which must define what the cloud calls."""
    path = ROOT / "functions" / f"{name}.py"
    if not path.is_file():
        sys.exit(f"there is no function {name!r}; there are {', '.join(functions())}")
    text = path.read_text()
    defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    if name not in defined:
        sys.exit(f"{path} defines {', '.join(sorted(defined)) or 'nothing'}, not {name!r}")
    return path


def needed_files(entry_point: Path) -> list[Path]:
    """Return the modules of agent/ that a file leads to, late imports included, and the data beside them.

    A module that nothing reachable names, in an ``import`` or as a file beside it, is left out. Data belongs to the
    nearest package above it.
    """
    modules, found = [entry_point], set[Path]()
    while modules:
        module = modules.pop()
        for path in _imported(module, module.read_text(encoding="utf-8")) - found:
            found.add(path)
            modules.append(path)
    packages = {path.parent for path in found}
    data = [path for path in (ROOT / "agent").rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}]
    return sorted(found | {path for path in data if _package(path) in packages})


@cache
def _imported(module: Path, text: str) -> frozenset[Path]:
    """Return the files of agent/ behind the imports of a module, with the packages around them, and those it names."""
    try:
        compile(text, module, "exec", dont_inherit=True)
    except SyntaxError as error:
        sys.exit(f"{module}: it does not compile, the build would fail: {error}")
    names, beside = set[str](), set[Path]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".py"):
            beside.add(module.parent / node.value)
    ours = [name.split(".") for name in names if name.split(".")[0] == "agent"]
    heads = {tuple(parts[: length + 1]) for parts in ours for length in range(len(parts))}
    files = {ROOT.joinpath(*head).with_suffix(".py") for head in heads}
    files |= {ROOT.joinpath(*head, "__init__.py") for head in heads}
    return frozenset(path for path in files | beside if path.is_file())


def _package(data: Path) -> Path:
    """Return the nearest folder above a data file that is a package."""
    return next(folder for folder in data.parents if (folder / "__init__.py").is_file())


def main() -> int:
    """Stage what the command line asks for; print the folders."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--out", type=Path, required=True)
    reader.add_argument("--only", nargs="*", metavar="FUNCTION", help="all when left out")
    reader.add_argument("--services", type=Path)
    reader.add_argument("--policy", type=Path)
    reader.add_argument("--otel", action="store_true", help="with what sends traces")
    args = reader.parse_args()
    for name in args.only or functions():
        print(stage(name, args.out, services=args.services, policy=args.policy, otel=args.otel))
    return 0


if __name__ == "__main__":
    sys.exit(main())
