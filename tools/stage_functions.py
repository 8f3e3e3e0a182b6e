"""Stages one folder for each function: main.py, agent/, prompts/, requirements.txt, services.toml, and nothing else.

functions-framework puts only the source file's folder on the path, and the build compiles every file in it; so each
function gets a whole folder of its own, in which its frame stands at the root as main.py.

Run: python tools/stage_functions.py --out build [--only on_log_event ...] [--services FILE] [--policy FILE]

It needs nothing but Python; deploy.sh calls it before anything is installed.
"""

import argparse
import ast
import compileall
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def functions() -> tuple[str, ...]:
    """Return the names of the functions: each file of functions/ defines one of its own name."""
    return tuple(sorted(path.stem for path in (ROOT / "functions").glob("*.py")))


def stage(name: str, out: Path, *, services: Path | None = None, policy: Path | None = None) -> Path:
    """Stage one function afresh.

    Args:
        name: One of :func:`functions`.
        out: Holds one folder for each function.
        services: The watched services; set ``SERVICES=services.toml`` with it.
        policy: The policy; set ``POLICY=policy.toml`` with it.

    Returns:
        The function's folder.
    """
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(_entry_point(name), folder / "main.py")
    for part in ("agent", "prompts"):
        shutil.copytree(ROOT / part, folder / part, ignore=LEFT_OUT)
    shutil.copy(ROOT / "requirements.txt", folder)
    for source, target in ((services, "services.toml"), (policy, "policy.toml")):
        if source is not None:
            shutil.copy(source, folder / target)
    if not compileall.compile_dir(folder, quiet=1, force=True):
        sys.exit(f"{folder}: a file does not compile, the build would fail")
    for cache in folder.rglob("__pycache__"):
        shutil.rmtree(cache)
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


def main() -> int:
    """Stage what the command line asks for; print the folders."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--out", type=Path, required=True)
    reader.add_argument("--only", nargs="*", metavar="FUNCTION", help="all when left out")
    reader.add_argument("--services", type=Path)
    reader.add_argument("--policy", type=Path)
    args = reader.parse_args()
    for name in args.only or functions():
        print(stage(name, args.out, services=args.services, policy=args.policy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
