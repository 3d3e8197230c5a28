"""Classes, their attributes and methods, and who assigns attributes from outside.

The type of `x` in `x.name = …` is resolved by annotations: of parameters, variables, attributes and
return values, by calls of the class itself, and through lists, dicts and `for` loops over them.
Where that fails, a variable or attribute whose name is the class name in snake case (`queue`,
`paged_queue`) is taken for that class if the class has the assigned attribute. Counted are plain,
augmented and annotated assignments and `del`, not calls that change a collection in place. An
assignment counts for the class that declares the attribute, also when a subclass is assigned to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.structure.tree import Module, Tree, imported_names, inside

# Containers by what iterating or indexing yields: the position of that type argument.
ELEMENTS = {
    "list": 0, "set": 0, "frozenset": 0, "deque": 0, "tuple": 0, "Iterator": 0, "Iterable": 0,
    "Sequence": 0, "dict": 1, "Mapping": 1, "defaultdict": 1, "OrderedDict": 1,
}  # fmt: skip
WRAPPERS = {"Final", "ClassVar", "Optional", "Annotated", "Self", "Awaitable"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Class:
    """One class. `attributes` are all names assigned on `self` or annotated in the body, with their types."""

    name: str
    module: Module
    node: ast.ClassDef
    bases: list[str]
    attributes: dict[str, ast.expr | None] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.module.name}.{self.name}"

    @property
    def place(self) -> str:
        return f"{self.module.path}:{self.node.lineno}"


@dataclass(frozen=True)
class Assignment:
    """One assignment of `attribute` of the class `owner`, found in `module`."""

    owner: Class
    attribute: str
    module: Module
    line: int
    own_class: bool
    by_name: bool

    @property
    def place(self) -> str:
        return f"{self.module.path}:{self.line}"


class Classes:
    """Every class at module level, and what each module calls by which name."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.by_key: dict[str, Class] = {}
        self.functions: dict[str, tuple[Module, Function]] = {}
        self.names: dict[str, dict[str, str]] = {}
        for module in tree.modules.values():
            self._read(module)
        snake: dict[str, list[Class]] = {}
        for each in self.by_key.values():
            snake.setdefault(snake_case(each.name), []).append(each)
        self.by_variable = {name: found[0] for name, found in snake.items() if len(found) == 1}

    def _read(self, module: Module) -> None:
        names: dict[str, str] = {}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                for local, full in imported_names(self.tree, module, node):
                    names[local] = full.removeprefix(f"{self.tree.package}.")
        for statement in module.tree.body:
            if isinstance(statement, ast.ClassDef):
                made = read_class(module, statement)
                self.by_key[made.key] = made
                names[statement.name] = made.key
            elif isinstance(statement, Function):
                key = f"{module.name}.{statement.name}"
                self.functions[key] = (module, statement)
                names[statement.name] = key
        self.names[module.name] = names

    def named(self, module: Module, name: str) -> Class | None:
        """The class that `module` calls `name`."""
        return self.by_key.get(self.names[module.name].get(name, ""))

    def line(self, start: Class) -> Iterator[Class]:
        """The class, then its bases in the project."""
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            each = waiting.pop(0)
            if each.key in seen:
                continue
            seen.add(each.key)
            yield each
            found = (self.named(each.module, base) for base in each.bases)
            waiting += [base for base in found if base is not None]

    def declaring(self, start: Class, attribute: str) -> Class | None:
        """The class or base that declares the attribute; the furthest, where several do."""
        found = [each for each in self.line(start) if attribute in each.attributes]
        return found[-1] if found else None


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def read_class(module: Module, node: ast.ClassDef) -> Class:
    """Attributes of `self.x = …` in every method, and of annotations and assignments in the body."""
    bases = [ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases]
    made = Class(node.name, module, node, bases)
    for statement in node.body:
        if isinstance(statement, Function):
            made.methods[statement.name] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            made.attributes[statement.target.id] = statement.annotation
    for method in made.methods.values():
        annotations = parameters(method)
        for inner in ast.walk(method):
            if isinstance(inner, ast.AnnAssign) and own(inner.target):
                made.attributes[own(inner.target)] = inner.annotation
            elif isinstance(inner, ast.Assign):
                for target in inner.targets:
                    for each in flat(target):
                        _note(made, own(each), inner.value, annotations)
    return made


def _note(made: Class, name: str, value: ast.expr, annotations: dict[str, ast.expr]) -> None:
    if not name or made.attributes.get(name) is not None:
        return
    if isinstance(value, ast.Name) and value.id in annotations:
        made.attributes[name] = annotations[value.id]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        made.attributes[name] = value.func  # a class; a function's name resolves to none
    else:
        made.attributes.setdefault(name, None)


def own(target: ast.expr) -> str:
    """The attribute's name of `self.name`, else ""."""
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == "self" else ""
    return ""


def flat(target: ast.expr) -> list[ast.expr]:
    """The single targets of `a, (b, *c) = …`."""
    if isinstance(target, ast.Tuple | ast.List):
        return [each for inner in target.elts for each in flat(inner)]
    return flat(target.value) if isinstance(target, ast.Starred) else [target]


def parameters(function: Function) -> dict[str, ast.expr]:
    """Annotations of the parameters, by name."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {each.arg: each.annotation for each in every if each.annotation is not None}


# -- types of expressions ------------------------------------------------------------------------
@dataclass(frozen=True)
class Typed:
    """An annotation and the module whose names it uses."""

    annotation: ast.expr
    module: Module


def simple(annotation: ast.expr) -> ast.expr:
    """Without quotes, `| None`, Final and Optional."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return simple(ast.parse(annotation.value, mode="eval").body)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [annotation.left, annotation.right]
        some = [
            each for each in sides if not (isinstance(each, ast.Constant) and each.value is None)
        ]
        return simple(some[0]) if len(some) == 1 else annotation
    if isinstance(annotation, ast.Subscript) and called(annotation.value) in WRAPPERS:
        return simple(annotation.slice)
    return annotation


def called(node: ast.expr) -> str:
    """The last name of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class Scope:
    """The variables of one function, by the annotations and values seen so far."""

    def __init__(self, classes: Classes, module: Module, owner: Class | None) -> None:
        self.classes = classes
        self.module = module
        self.owner = owner
        self.variables: dict[str, Typed | None] = {}

    def class_of(self, node: ast.expr) -> Class | None:
        typed = self.type_of(node)
        return None if typed is None else self.resolve(typed)

    def resolve(self, typed: Typed) -> Class | None:
        return self.classes.named(typed.module, called(simple(typed.annotation)))

    def type_of(self, node: ast.expr) -> Typed | None:
        if isinstance(node, ast.Name):
            if node.id == "self" and self.owner is not None:
                return Typed(ast.Name(self.owner.name), self.owner.module)
            return self.variables.get(node.id)
        if isinstance(node, ast.Attribute):
            return self._member(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            return self.element(self.type_of(node.value))
        if isinstance(node, ast.IfExp):
            return self.type_of(node.body) or self.type_of(node.orelse)
        if isinstance(node, ast.BoolOp):
            return next((each for each in map(self.type_of, node.values) if each), None)
        return self.type_of(node.value) if isinstance(node, ast.NamedExpr | ast.Await) else None

    def _member(self, node: ast.Attribute) -> Typed | None:
        start = self.class_of(node.value)
        for each in self.classes.line(start) if start is not None else ():
            annotation = each.attributes.get(node.attr)
            if annotation is not None:
                return Typed(annotation, each.module)
            method = each.methods.get(node.attr)
            if method is not None and method.returns is not None and is_property(method):
                return Typed(method.returns, each.module)
        return None

    def _call(self, node: ast.Call) -> Typed | None:
        function = node.func
        if isinstance(function, ast.Name):
            if self.classes.named(self.module, function.id) is not None:
                return Typed(function, self.module)
            key = self.classes.names[self.module.name].get(function.id, "")
            found = self.classes.functions.get(key)
            if found is not None and found[1].returns is not None:
                return Typed(found[1].returns, found[0])
            wraps = function.id in {"list", "sorted", "reversed", "tuple", "iter", "cast"}
            return self.type_of(node.args[0]) if wraps and node.args else None
        if not isinstance(function, ast.Attribute):
            return None
        start = self.class_of(function.value)
        for each in self.classes.line(start) if start is not None else ():
            method = each.methods.get(function.attr)
            if method is not None:
                return None if method.returns is None else Typed(method.returns, each.module)
        typed = self.type_of(function.value)
        if typed is None or start is not None:
            return None
        if function.attr in {"get", "pop", "popleft", "setdefault", "popitem"}:
            return self.element(typed)
        return typed if function.attr in {"values", "copy"} else None

    def element(self, typed: Typed | None) -> Typed | None:
        """The type that a container yields; of a dict, the type of its values."""
        if typed is None:
            return None
        annotation = simple(typed.annotation)
        if not isinstance(annotation, ast.Subscript):
            return None
        position = ELEMENTS.get(called(annotation.value))
        if position is None:
            return None
        inner = annotation.slice
        if isinstance(inner, ast.Tuple):
            return Typed(inner.elts[position], typed.module) if len(inner.elts) > position else None
        return Typed(inner, typed.module) if position == 0 else None


def is_property(method: Function) -> bool:
    return any(called(each) in {"property", "cached_property"} for each in method.decorator_list)


# -- assignments ---------------------------------------------------------------------------------
def assignments(classes: Classes) -> list[Assignment]:
    """Every assignment to an attribute of a class other than through `self`, in the order of the files."""
    found: list[Assignment] = []
    for module in classes.tree.modules.values():
        for statement in module.tree.body:
            if isinstance(statement, ast.ClassDef):
                owner = classes.by_key[f"{module.name}.{statement.name}"]
                for method in owner.methods.values():
                    _Finder(Scope(classes, module, owner), found).function(method)
            elif isinstance(statement, Function):
                _Finder(Scope(classes, module, None), found).function(statement)
    return found


class _Finder(ast.NodeVisitor):
    """Walks one function in the order of its lines; nested functions see the same variables."""

    def __init__(self, scope: Scope, found: list[Assignment]) -> None:
        self.scope = scope
        self.found = found

    def function(self, node: Function) -> None:
        for name, annotation in parameters(node).items():
            self.scope.variables[name] = Typed(annotation, self.scope.module)
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.function(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            for each in flat(target):
                self._target(each, self.scope.type_of(node.value) if each is target else None)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Attribute):
            self._target(node.target, None)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
        self._target(node.target, Typed(node.annotation, self.scope.module))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._target(node.target, self.scope.type_of(node.value))

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                self._target(target, None)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def _loop(self, target: ast.expr, values: ast.expr) -> None:
        """`for x in list`, `for key, x in dict.items()`, `for number, x in enumerate(list)`."""
        pair = isinstance(values, ast.Call) and called(values.func) in {"items", "enumerate"}
        if isinstance(values, ast.Call) and pair:
            inner = values.func.value if isinstance(values.func, ast.Attribute) else values.args[0]
            targets = flat(target)
            if len(targets) == 2:
                self._target(targets[1], self.scope.element(self.scope.type_of(inner)))
            return
        typed = self.scope.type_of(values)
        for each in flat(target):
            self._target(each, self.scope.element(typed) if each is target else None)

    def _target(self, target: ast.expr, typed: Typed | None) -> None:
        if isinstance(target, ast.Name):
            # A later assignment of unknown type does not take a known type away.
            if typed is not None or target.id not in self.scope.variables:
                self.scope.variables[target.id] = typed
        elif isinstance(target, ast.Attribute):
            self._attribute(target)

    def _attribute(self, target: ast.Attribute) -> None:
        if isinstance(target.value, ast.Name) and target.value.id in {"self", "cls"}:
            return
        classes = self.scope.classes
        found = self.scope.class_of(target.value)
        by_name = found is None and self.scope.type_of(target.value) is None
        if by_name:
            found = classes.by_variable.get(called(target.value).lstrip("_"))
        owner = None if found is None else classes.declaring(found, target.attr)
        if owner is None:
            return
        line = classes.line(self.scope.owner) if self.scope.owner is not None else ()
        self.found.append(
            Assignment(
                owner, target.attr, self.scope.module, target.lineno, owner in list(line), by_name
            )
        )


def outside_module(each: Assignment) -> bool:
    return each.module is not each.owner.module


def outside_package(each: Assignment) -> bool:
    """Outside the folder of the class and the folders below it."""
    return not inside(each.module.folder, each.owner.module.folder)


def outside_noun(each: Assignment) -> bool:
    """Outside the folder that bears the class's name (`queue/` of Queue), else outside the files
    of that prefix beside it (`queue*.py`)."""
    noun = snake_case(each.owner.name)
    folder = each.owner.module.folder
    if folder.rpartition("/")[2] == noun:
        return outside_package(each)
    return each.module.folder != folder or not each.module.stem.startswith(noun)


# -- other figures of functions and expressions --------------------------------------------------
def functions_with(tree: Tree, argument: str, annotation: str) -> tuple[list[str], list[str]]:
    """Places of the functions with an argument of that name, and with one annotated so."""
    named, typed = [], []
    for module in tree.modules.values():
        for node in ast.walk(module.tree):
            if not isinstance(node, Function):
                continue
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            place = f"{module.path}:{node.lineno}"
            if any(each.arg == argument for each in every):
                named.append(place)
            annotated = [simple(each.annotation) for each in every if each.annotation is not None]
            if any(called(each) == annotation for each in annotated):
                typed.append(place)
    return named, typed


def long_chains(tree: Tree, links_min: int = 4) -> list[str]:
    """Places of attribute chains with at least `links_min` dots after the first name."""
    found = []
    for module in tree.modules.values():
        inner: set[int] = set()
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Attribute) or id(node) in inner:
                continue
            links, value = 0, ast.expr()
            value = node
            while isinstance(value, ast.Attribute):
                inner.add(id(value))
                links += 1
                value = value.value
            if links >= links_min and isinstance(value, ast.Name):
                found.append(f"{module.path}:{node.lineno}")
    return found
