"""Sound specs: models whose types are worked out while they are written, over all that the language has."""

from __future__ import annotations

from random import Random

from modgraph.declare import record_as
from modgraph.ops import Op
from modgraph.routers import Router
from modgraph.routers.router import PoolTypes
from modgraph.syntax import keywords
from modgraph.types import Axis, Misfit, TensorType, floats
from tests.assault.settings import sample_settings, written

VECTOR_OPS = (
    "linear linear scale layer_norm rms_norm relu gelu tanh sigmoid silu modulated_linear modulated_mlp".split()
)
KEEPING = "relu gelu tanh layer_norm rms_norm scale dropout identity softmax elu sigmoid leaky_relu softplus".split()
CHAINED = [
    *(name for name, op in Op.registry.items() if op.operands[0].dtype == "float" and len(op.operands) == 1),
    *VECTOR_OPS,
]
UNCHAINED = {"load", "importance", "add", "subtract", "multiply", "divide", "power", "concat", "flatten", "entropy"}
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 12)
WIDTHS = (2, 4, 4, 6, 8, 12)
RESERVED = set(keywords()) | {"x", "h", "v", "i"}


def sound(rng: Random) -> str:
    """A model, its blocks before it, most of it in several lines."""
    return _Model(rng).text()


def written_type(type_: TensorType) -> str:
    """A type as a spec has it, where a pool's axis is called as the pool."""
    axes = [*(axis.name or str(axis.size) for axis in type_.shape), *([] if type_.size is None else [str(type_.size)])]
    return f"{type_.dtype}[{', '.join(axes)}]" if axes else type_.dtype


def last_size(type_: TensorType) -> int:
    """How long the last axis is, 0 if of any length."""
    return type_.shape[-1].size or 0


class _Model:
    """A model being written: lines, and the values, modules, pools and routers there are."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.blocks: list[str] = []
        self.lines: list[str] = []
        self.values: dict[str, TensorType] = {}
        self.routers: dict[str, str] = {}  # the ops that read what they record, by the router's name
        self.parameters: list[str] = []
        self.count = 0
        self.depth = 1

    def text(self) -> str:
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            self._input()
        for _ in range(rng.randint(1, 7)):
            rng.choice(STATEMENTS)(self)
        self._ends()
        parameters = f"({', '.join(self.parameters)})" if self.parameters else ""
        return "\n".join([*self.blocks, f"model m{parameters} {{", *self.lines, "}", ""])

    # ------------------------------------------------------------ names and numbers

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        comment = "  # a comment" if self.rng.random() < 0.03 else ""
        self.lines.append("  " * self.depth + text + comment)

    def number(self, value: int) -> str:
        """A number, sometimes through arithmetic or a parameter."""
        kind = self.rng.random()
        if kind < 0.8:
            return str(value)
        if kind < 0.9:
            name = self.name("n")
            self.parameters.append(f"{name}={value}")
            return name
        return self.rng.choice([f"{value} * 1", f"({value} + 1 - 1)", f"[{value}, 7][0]", f"min({value}, {value + 3})"])

    # ------------------------------------------------------------ statements

    def _input(self) -> None:
        rng = self.rng
        kind = rng.random()
        if kind < 0.25:
            type_ = floats(rng.choice((1, 2, 3, 4)), rng.choice((4, 6, 8, 12)), rng.choice((4, 6, 8, 12)))
        else:
            lead: list[int | Axis] = [rng.choice(LENGTHS) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
            if lead and rng.random() < 0.4:
                lead[0] = Axis(None, rng.choice(("time", "words", "places")))
            type_ = floats(*lead, rng.choice(WIDTHS))
        name = self.name("in")
        if kind > 0.85 and type_.shape[:-1]:
            vectors, width = self.name("a"), rng.choice(WIDTHS)
            self.line(f"input {name}: {written_type(TensorType('token', type_.shape[:-1], size=rng.randint(1, 30)))}")
            self.line(f"{vectors} = {name} -> embedding({width})")
            self.values[vectors] = floats(*type_.shape[:-1], width)
            return
        self.line(f"input {name}: {written_type(type_)}")
        self.values[name] = type_

    def _chain(self) -> None:
        source, type_ = self._value()
        stages, type_ = self._stages(type_, self.rng.randint(1, 4), CHAINED)
        self._bind(" -> ".join([source, *stages]), type_)

    def _combine(self) -> None:
        """Arithmetic between values, or with a number; or values side by side, or one cut."""
        rng = self.rng
        source, type_ = self._value()
        candidates = [name for name, other in self.values.items() if other == type_]
        kind = rng.randrange(4)
        if kind == 0 and type_.shape and type_.shape[-1].size is not None:
            self._bind(
                f"({source}, {rng.choice(candidates)}) -> concat", floats(*type_.shape[:-1], 2 * last_size(type_))
            )
        elif kind == 1 and type_.shape and last_size(type_) and last_size(type_) % 2 == 0:
            first, second = self.name("a"), self.name("a")
            self.line(f"{first}, {second} = {source} -> split(2)")
            half = floats(*type_.shape[:-1], last_size(type_) // 2)
            self.values |= {first: half, second: half}
        elif kind == 2:
            self._bind(rng.choice((f"0.5 * {source} + 1", f"-{source}", f"1 - {source}", f"{source} ** 2")), type_)
        else:
            self._bind(f"{source} {rng.choice('+-*')} {rng.choice(candidates)}", type_)

    def _residual(self) -> None:
        source, type_ = self._value()
        stages, _ = self._stages(type_, self.rng.randint(1, 2), KEEPING)
        self._bind(f"{source} + ({' -> '.join([source, *stages])})", type_)

    def _module(self) -> None:
        source, type_ = self._value()
        stages, result = self._stages(type_, self.rng.randint(1, 3), CHAINED)
        name = self.name("e")
        keyword = self.rng.choice(("module", "tokenizer"))
        declaration = f"{keyword} {name} = {' -> '.join(stages)}"
        self.line(f"frozen {{ {declaration} }}" if self.rng.random() < 0.15 else declaration)
        self._bind(f"{source} -> {name}", result)
        if self.rng.random() < 0.4:
            self._bind(f"{source} -> {name} -> relu", result)

    def _route(self) -> None:
        source, type_ = self._value(lambda type_: len(type_.shape) >= 1 and type_.shape[-1].size is not None)
        if not type_.shape or not type_.shape[-1].size is not None:
            return
        size = self.rng.choice((1, 2, 3, 4))
        result, pool = self._pool(type_.with_shape(type_.shape[-1:]), size)
        types = PoolTypes(pool, Axis(size, pool), floats(type_.shape[-1]), result)
        routed = self._router(types, type_)
        if routed is None:
            self._bind(f"{source} -> {pool}", floats(*type_.shape[:-1], types.axis, *result.shape))
        else:
            router, value = routed
            self._bind(f"{source} -> {pool} by {router}", value)

    def _pool(self, message: TensorType, size: int) -> tuple[TensorType, str]:
        """A pool of modules alike or unlike, over vectors."""
        rng, pool = self.rng, self.name("p")
        width = rng.choice(WIDTHS)
        if rng.random() < 0.3:
            kinds = [f"linear({width})", f"linear(6) -> gelu -> linear({width})", f"layer_norm -> linear({width})"]
            self.line(f"pool {pool} = [{', '.join(rng.choice(kinds) for _ in range(size))}]")
            return floats(width), pool
        stages, result = self._stages(message, rng.randint(1, 2), VECTOR_OPS)
        grown = rng.randrange(size) if rng.random() < 0.1 else 0
        self.line(f"pool {pool}[{size - grown}] = {' -> '.join(stages)}")
        if grown:
            self.line(f"grow {pool}[{grown}]")
        return result, pool

    def _router(self, pool: PoolTypes, tokens: TensorType) -> tuple[str, TensorType] | None:
        """A router that can choose among a pool's modules, and the type of the route's value."""
        for _ in range(6):
            declaration = self.rng.choice(list(Router.registry.values()))
            settings = sample_settings(declaration, self.rng)
            if declaration.name == "every_module":
                continue
            try:
                router = declaration(**settings)
                value = router.bind_pool(pool, tokens).results[0]
            except Misfit:
                continue
            name = self.name("r")
            self.line(f"router {name} = {written(declaration.name, settings)}")
            self.routers[name] = " ".join(op for op in ("importance", "load") if self._has(router, op))
            return name, value
        return None

    def _has(self, router: Router, op: str) -> bool:
        return record_as(router.records, *Op.registry[op].reads) is not None

    def _repeat(self) -> None:
        source, type_ = self._value()
        x = self.name("a")
        self.line(f"{x} = {source}")
        self.values[x] = type_
        stages, _ = self._stages(type_, self.rng.randint(1, 2), KEEPING)
        body = f"{x} = {x} + ({' -> '.join([x, *stages])})"
        if self.rng.random() < 0.3:
            body += f" if i in [0, 2] {{ {x} = {x} -> gelu }} else {{ {x} = 0.5 * {x} }}"
        head = f"repeat {self.name('blocks')}[i] in 0.." if self.rng.random() < 0.6 else "for i in 0.."
        self.line(f"{head}{self.number(self.rng.randint(0, 4))} {{ {body} }}")

    def _branch(self) -> None:
        source, type_ = self._value()
        x = self.name("a")
        self.line(f"{x} = {source}")
        self.values[x] = type_
        conditions = ["true", "2 in 0..4", "not (1 > 2)", "1.5 <= 2 and true", "len([1, 2]) == 2", '"a" == "b"']
        stages, _ = self._stages(type_, 1, KEEPING)
        self.line(f"if {self.rng.choice(conditions)} {{ {x} = {' -> '.join([x, *stages])} }} else {{ {x} = {x} * 2 }}")

    def _block(self) -> None:
        """A block of its own for a value's type, its outer axis sometimes named, used once or twice."""
        source, type_ = self._value()
        name = self.name("b")
        axes = [axis.name or str(axis.size) for axis in type_.shape]
        if axes and self.rng.random() < 0.5:
            axes[0] = "any"
        elif axes and type_.shape[0].is_padded:
            axes[0] = "other"
        stages, result = self._stages(type_, self.rng.randint(1, 3), KEEPING)
        inner = f"float[{', '.join(axes)}]" if axes else "float"
        self.blocks.append(
            f"block {name}(k=2) {{\n  input v: {inner}\n  y = {' -> '.join(['v', *stages])}\n  output y\n}}"
        )
        self._bind(f"{source} -> {name}", result)
        if self.rng.random() < 0.4:
            self._bind(f"{source} -> {name}(k=3) -> {name}", result)

    def _scan(self) -> None:
        source, type_ = self._value(lambda type_: len(type_.shape) >= 2)
        if len(type_.shape) < 2 or not type_.shape[-1].size is not None:
            return
        axis, *step = type_.shape
        width, result, more = self.rng.choice(WIDTHS), self.name("a"), self.name("a")
        routed = self.rng.random() < 0.4 and len(step) == 1
        self.line(f"scan {source} as v with h: float[{width}] {{")
        self.depth += 1
        step_type = floats(*step)
        if routed:
            pool_result, pool = self._pool(floats(step[-1]), 3)
            found = self._router(PoolTypes(pool, Axis(3, pool), floats(step[-1]), pool_result), step_type)
            self.line(f"q = v -> {pool} by {found[0]}" if found is not None else f"q = v -> {pool}")
        reduced = "v" if len(step) == 1 else "(v -> mean)" if len(step) == 2 else "(v -> mean -> mean)"
        self.line(f"h = ({reduced}, h) -> concat -> linear({width}) -> tanh")
        self.line(f"yield (h, v) yield {'q -> sum(axis=-1)' if routed else 'h * 2'}")
        self.depth -= 1
        third = self.name("a")
        self.line(f"}} as {result}, {more}, {third}")
        self.values |= {result: floats(axis, width), more: type_}
        if not routed:
            self.values[third] = floats(axis, width)

    def _loop(self) -> None:
        source, type_ = self._value(lambda type_: bool(type_.shape) and type_.shape[-1].size is not None)
        if not type_.shape or type_.shape[-1].size is None:
            return
        own, count = self.rng.randint(0, len(type_.shape) - 1), len(type_.shape)
        entries, h, t = floats(*type_.shape[:own]), self.name("h"), self.name("t")
        state = f"{h}: {written_type(type_)} = {source}, {t}: {written_type(entries)}"
        self.line(f"scan 0..{self.rng.randint(1, 4)} as n with {state} {{")
        self.depth += 1
        self.line(f"{h} = {h} + ({h} -> linear({type_.shape[-1].size}) -> tanh)")
        self.line(f"{t} = {t} + 0.3 * ({h} * {h}{' -> mean(axis=-1)' * (count - own)})")
        self.line(f"yield ({h}, {t} - n)")
        self.depth -= 1
        names = self.name("a"), self.name("a")
        self.line(f"}} until {t} > {self.rng.choice((0.0, 0.4, 9.0))} as {', '.join(names)}")
        self.values |= {names[0]: type_, names[1]: entries}

    # ------------------------------------------------------------ ends

    def _ends(self) -> None:
        rng = self.rng
        for name in rng.sample(list(self.values), min(len(self.values), rng.randint(1, 3))):
            self.line(f"output {name}" if rng.random() < 0.7 else f"output {self.name('out')} = {name}")
        for name, ops in self.routers.items():
            for op in ops.split():
                if rng.random() < 0.5:
                    self.line(f"loss {self.number(2)} * {op}({name})")
        for name, type_ in self.values.items():
            if rng.random() < 0.2:
                self._loss(name, type_)

    def _loss(self, name: str, type_: TensorType) -> None:
        target = self.name("t")
        if type_.shape and type_.shape[-1].size is not None and self.rng.random() < 0.7:
            if self.rng.random() < 0.5:
                label = TensorType("class", type_.shape[:-1], size=last_size(type_))
                self.line(f"target {target}: {written_type(label)}")
                self.line(f"loss {self.name('l')} = cross_entropy({name}, {target})")
            else:
                self.line(f"target {target}: {written_type(type_)} loss gaussian({name}, {target}, variance=0.5)")
        else:
            self.line(f"target {target}: {written_type(type_)} loss mse({name}, {target})")

    # ------------------------------------------------------------ values

    def _value(self, wanted: object = None) -> tuple[str, TensorType]:
        """A value there is, of the wanted kind if there is one."""
        fitting = [each for each in self.values.items() if wanted is None or wanted(each[1])]  # type: ignore[operator]
        return self.rng.choice(fitting or list(self.values.items()))

    def _bind(self, expression: str, type_: TensorType) -> None:
        name = self.name("a")
        self.line(f"{name} = {expression}")
        self.values[name] = type_

    def _stages(self, type_: TensorType, count: int, ops: list[str]) -> tuple[list[str], TensorType]:
        """Ops in a chain, each fitting what the one before yields."""
        stages: list[str] = []
        for _ in range(count * 4):
            name = self.rng.choice(ops)
            if len(stages) == count or name in UNCHAINED:
                continue
            settings = sample_settings(Op.registry[name], self.rng)
            try:
                signature = Op.registry[name](**settings).bind(type_)
                signature.weight_axes()
            except Misfit:
                continue
            if len(signature.results) == 1:
                stages.append(written(name, settings))
                (type_,) = signature.results
        return stages or ["identity"], type_


STATEMENTS = (
    *(_Model._chain, _Model._chain, _Model._combine, _Model._residual, _Model._module, _Model._route, _Model._route),
    *(_Model._repeat, _Model._branch, _Model._block, _Model._scan, _Model._loop),
)
