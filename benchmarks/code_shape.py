"""The shape of `src`: its size, its packages, modules with a single importer, import cycles, and doubtful names.

    python benchmarks/code_shape.py
    python benchmarks/code_shape.py --revision 9a78955 --json

What is counted:

- Statements are all `ast.stmt` nodes but docstrings. A second figure has the docstrings too.
- A package's modules are the .py files directly in its folder, without `__init__.py`.
- A room is a folder with `__init__.py`. A public module has no part of its name that begins with `_`, and is neither
  `__init__` nor `__main__`.
- A module's importers are the modules of `src` that import it anywhere: at the top, inside functions, for types alone.
  `from dvfl.a import b` counts for `dvfl.a.b` where that is a module, and for the package `dvfl.a` otherwise. A name
  that a package re-exports therefore counts for the package.
- "One importer" counts all modules, packages included, that exactly one module imports, whichever room that is in. This
  is the review's figure: at revision 9a78955 it gives 53 of 148 in the core (36 %), 21 of 77 in federation, 23 of 31 in
  cli and 20 of 45 in privacy.
- "Single importer in another room" counts public modules alone: exactly one module imports them, and that one lies in
  another room.
- Import cycles follow what runs when a module is imported: no imports inside functions, none under TYPE_CHECKING.
  Modules directly in `dvfl` stand for themselves.
- Participles are functions and methods whose whole name is one past form: `judged`, `held`, `took`. Special methods are
  left out of the total.
- `one` and `own` are counted wherever they are bound: assignments, loops, comprehensions, fields, parameters.
"""

import argparse
import ast
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORE = ("parties", "strategies", "data", "estimators", "experiments")
MOST_MODULES = 14
DOUBTFUL = ("one", "own")
NOT_PARTICIPLES = "bed bleed breed embed exceed feed need proceed red seed shed speed succeed"
IRREGULAR = """
beaten became begun bent bitten blown born bought bound broken brought built came caught chosen done drawn driven drunk
dug eaten fallen felt flown forgotten fought found frozen gave given gone gotten grown heard held hidden hung kept knew
known laid learnt left lent lit lost made meant met paid proven ridden risen said sang saw seen sent shaken shown slept
sold sought spent spoken spun stolen stood struck stuck sunk swept sworn swum taken taught thought thrown told took torn
understood went woken won worn wound woven written wrote
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the source."""

    name: str  # dotted; of a package without `__init__`
    is_package: bool
    lines: int
    tree: ast.Module

    @property
    def room(self) -> str:
        """The package that it lies in; a package lies in itself."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def group(self) -> str:
        """The second part of its name; modules directly in `dvfl` are all in `dvfl`."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 2 or (self.is_package and len(parts) == 2) else parts[0]

    @property
    def is_public(self) -> bool:
        parts = self.name.split(".")
        return not self.is_package and not any(part.startswith("_") for part in parts)


@dataclass(frozen=True)
class Import:
    """One module's import of another."""

    importer: Module
    target: Module
    on_import: bool  # it runs when the importer is imported


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", help="of git, in the place of the working tree")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with open_source(options.revision) as source:
        shape = measure(source)
    print(json.dumps({"revision": options.revision} | shape, indent=2) if options.json else describe(shape))


@contextmanager
def open_source(revision: str | None) -> Iterator[Path]:
    """The folder `src` of the working tree, or a temporary copy of a revision's."""
    if revision is None:
        yield ROOT / "src"
        return
    archive = subprocess.run(["git", "archive", "--format=tar", revision, "src"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        sys.exit(f"no source of revision '{revision}': {archive.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
        yield Path(folder).resolve() / "src"


def measure(source: Path) -> dict[str, Any]:
    """All figures, ready for JSON."""
    modules = read_modules(source)
    imports = list(find_imports(modules))
    importers = defaultdict(set)
    for each in imports:
        importers[each.target.name].add(each.importer.name)
    return {
        "size": count_size(modules.values()),
        "packages": count_package_modules(modules),
        "groups": {name: count_group(members, importers, modules) for name, members in list_groups(modules)},
        "cycles": {
            "dvfl.X": find_cycles(imports, lambda module: ".".join(module.name.split(".")[:2])),
            "packages": find_cycles(imports, lambda module: module.name if module.room == "dvfl" else module.room),
        },
    }


def read_modules(source: Path) -> dict[str, Module]:
    """Every module below a folder, by its dotted name."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(name, is_package, len(text.splitlines()), ast.parse(text))
    return modules


def count_size(modules: Collection[Module]) -> dict[str, int]:
    """Modules, lines and statements."""
    nodes = [node for module in modules for node in ast.walk(module.tree)]
    statements = sum(isinstance(node, ast.stmt) for node in nodes)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(isinstance(node, documented) and ast.get_docstring(node) is not None for node in nodes)
    return {
        "modules": len(modules),
        "lines": sum(module.lines for module in modules),
        "statements": statements - docstrings,
        "statements_with_docstrings": statements,
    }


def count_package_modules(modules: Mapping[str, Module]) -> dict[str, int]:
    """How many modules lie directly in each package."""
    counts = Counter(module.room for module in modules.values() if not module.is_package)
    return {name: counts[name] for name, module in modules.items() if module.is_package}


def list_groups(modules: Mapping[str, Module]) -> Iterator[tuple[str, list[Module]]]:
    """The whole source, the core, and each second part of the names."""
    members = defaultdict(list)
    for module in modules.values():
        members[module.group].append(module)
    yield "all", list(modules.values())
    yield "core", [module for name in CORE for module in members[name]]
    yield from sorted((name, group) for name, group in members.items() if group)


def count_group(
    members: Collection[Module], importers: Mapping[str, set[str]], modules: Mapping[str, Module]
) -> dict[str, int]:
    """The figures of some modules."""
    single = [module for module in members if len(importers.get(module.name, ())) == 1]
    abroad = [module for module in single if modules[next(iter(importers[module.name]))].room != module.room]
    nodes = [node for module in members for node in ast.walk(module.tree)]
    names = [node.name for node in nodes if isinstance(node, Function) and not node.name.startswith("__")]
    return {
        "modules": len(members),
        "statements": count_size(members)["statements"],
        "one_importer": len(single),
        "public_modules": sum(module.is_public for module in members),
        "public_one_importer": sum(module.is_public for module in single),
        "public_single_importer_in_another_room": sum(module.is_public for module in abroad),
        "functions": len(names),
        "participles": sum(is_participle(name.lstrip("_")) for name in names),
        "one_or_own": sum(binds_doubtful_name(node) for node in nodes),
    }


def is_participle(name: str) -> bool:
    """Whether a name is one past form of a verb and nothing else."""
    regular = name.isalpha() and name.endswith("ed") and name not in NOT_PARTICIPLES.split()
    return regular or name in IRREGULAR.split()


def binds_doubtful_name(node: ast.AST) -> bool:
    """Whether a node binds `one` or `own`."""
    if isinstance(node, ast.arg):
        return node.arg in DOUBTFUL
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in DOUBTFUL


def find_imports(modules: Mapping[str, Module]) -> Iterator[Import]:
    """Every import of a module of the source by another."""
    for module in modules.values():
        for name, on_import in list_imports(module.tree, module):
            target = modules.get(name) or modules.get(name.rpartition(".")[0])
            if target is not None and target is not module:
                yield Import(module, target, on_import)


def list_imports(node: ast.AST, module: Module, on_import: bool = True) -> Iterator[tuple[str, bool]]:
    """Dotted names imported below a node, and whether that runs on import; the last part may be a module or a name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, on_import) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = resolve_base(child, module)
            yield from ((f"{base}.{alias.name}", on_import) for alias in child.names)
        elif isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from list_imports(ast.Module(child.body, []), module, False)
            yield from list_imports(ast.Module(child.orelse, []), module, on_import)
        else:
            yield from list_imports(child, module, on_import and not isinstance(child, Function))


def resolve_base(statement: ast.ImportFrom, module: Module) -> str:
    """The dotted name after `from`, also of a relative import."""
    if not statement.level:
        return statement.module or ""
    parts = module.room.split(".")
    start = parts[: len(parts) - statement.level + 1]
    return ".".join([*start, *([statement.module] if statement.module else [])])


def find_cycles(imports: Iterable[Import], place: Callable[[Module], str]) -> list[dict[str, Any]]:
    """Groups of places that reach one another by imports that run on import, with an example of each step."""
    steps: dict[str, dict[str, str]] = defaultdict(dict)
    for each in imports:
        start, end = place(each.importer), place(each.target)
        if each.on_import and start != end:
            steps[start].setdefault(end, f"{each.importer.name} imports {each.target.name}")
    reach = {start: find_reachable(start, steps) for start in list(steps)}
    cycles = {frozenset(end for end in ends if start in reach.get(end, ())) for start, ends in reach.items()}
    return [
        {
            "members": sorted(cycle),
            "steps": [steps[start][end] for start in sorted(cycle) for end in sorted(steps[start]) if end in cycle],
        }
        for cycle in sorted(cycles - {frozenset()}, key=sorted)
    ]


def find_reachable(start: str, steps: Mapping[str, Collection[str]]) -> set[str]:
    """All places that some steps from a place lead to."""
    reached: set[str] = set()
    ahead = list(steps.get(start, ()))
    while ahead:
        place = ahead.pop()
        if place not in reached:
            reached.add(place)
            ahead.extend(steps.get(place, ()))
    return reached


def describe(shape: Mapping[str, Any]) -> str:
    """The figures as tables."""
    lines = ["| what | figure |", "| --- | --- |"]
    lines += [f"| {name.replace('_', ' ')} | {value:,} |" for name, value in shape["size"].items()]
    whole, core = shape["groups"]["all"], shape["groups"]["core"]
    for title, part, total in (
        ("modules with one importer", "one_importer", "modules"),
        ("public modules with one importer", "public_one_importer", "public_modules"),
        (
            "public modules with a single importer in another room",
            "public_single_importer_in_another_room",
            "public_modules",
        ),
        ("functions named by a participle", "participles", "functions"),
    ):
        lines += [
            f"| {title}{where} | {format_share(group[part], group[total])} |"
            for where, group in (("", whole), (", core", core))
        ]
    lines.append(f"| bindings of `one` or `own` | {whole['one_or_own']} |")
    lines.append(f"| bindings of `one` or `own`, core | {core['one_or_own']} |")
    large = sum(count > MOST_MODULES for count in shape["packages"].values())
    lines.append(f"| packages of more than {MOST_MODULES} modules | {format_share(large, len(shape['packages']))} |")
    lines += [f"| import cycles, {level} | {len(cycles)} |" for level, cycles in shape["cycles"].items()]
    lines += ["", "| package | modules | |", "| --- | --- | --- |"]
    for name, count in shape["packages"].items():
        lines.append(f"| {name} | {count} | {f'over {MOST_MODULES}' if count > MOST_MODULES else ''} |")
    columns = list(whole)
    lines += ["", f"| group | {' | '.join(name.replace('_', ' ') for name in columns)} |"]
    lines.append("| --- " * (len(columns) + 1) + "|")
    for name, group in shape["groups"].items():
        lines.append(f"| {name} | {' | '.join(str(group[column]) for column in columns)} |")
    for level, cycles in shape["cycles"].items():
        for cycle in cycles:
            lines += ["", f"Import cycle, {level}: {', '.join(cycle['members'])}"]
            lines += [f"- {step}" for step in cycle["steps"]]
    return "\n".join(lines)


def format_share(part: int, total: int) -> str:
    """A part of a total, in words and per cent."""
    return f"{part} of {total} ({part / max(total, 1):.1%})"


if __name__ == "__main__":
    main()
