"""Small specs in which definitions, calls and names meet in ways of their own, by what is odd of each."""

HEAD = "model m {\n  input x: float[5, 8]\n"
EXPERTS = "  pool p[4] = linear(8)\n  router g = noisy_top_k(2)\n"
SENDS = "block sends(p, g) { input x: float[t, d] y = x -> p by g output y }\n"
LEARNS = (
    "block learns { input x: float[t, d] pool p[3] = linear(8) router r = noisy_top_k(2) y = x -> p by r output y }\n"
)

STRUCTURES = {
    "a choice that the caller made": f"""block b(q) {{
      input x: float[t, d] input w: float[t, k] y = x -> q by w output y
    }} {HEAD} pool p[4] = linear(8)
      s = x -> linear(p) w = (s -> softmax) * (s -> top_k(2)) y = (x, w) -> b(p) output y }}""",
    "two loops of one name": f"""{HEAD}
      repeat b[i] in 0..2 {{ h[i] = x -> relu }} repeat b[i] in 0..2 {{ g[i] = x -> tanh }}
      y = (h[1], g[1]) -> concat output y }}""",
    "a loop in a for": f"""{HEAD} h = x
      for s in 0..2 {{ repeat b[i] in 0..2 {{ h = h -> linear(8) }} }} output h }}""",
    "a module used twice, with a pool in it": f"{LEARNS}{HEAD} module f = learns y = x -> f -> f output y }}",
    "records of two calls before": f"""{SENDS}block aux(g) {{
      input x: float[t, d] y = x -> relu loss importance(g) output y
    }} {HEAD}{EXPERTS} y = x -> sends(p, g) -> sends(p, g) z = y -> aux(g) output z }}""",
    "templates over values of the model": f"""block applies(f) {{ input x: float[t, d] y = x -> f output y }}
      {HEAD} pool p[4] = linear(8) w = x -> linear(p) -> softmax
      module e = linear(8) -> p by w y = x -> applies(linear(8) -> p by w) -> e output y }}""",
    "names that look like those of a round": f"""block blk {{
      input x: float[t, d] pool e[3] = linear(8) z = x -> e u = x -> new_axis(3, axis="e", at=-2)
      v = (z, u) -> contract r = z -> rename(e="blocks.0.e") output v output r
    }} {HEAD} y, z = x -> blk output y output z }}""",
    "zeros with signs": f"""block sc(k) {{ input x: float[t, d] y = x + k output y }}
      {HEAD} z = x -> sc(0.0) -> sc(-0.0) -> sc(-0) -> sc(0) output z }}""",
    "one label for two calls": f"""block f {{ input x: float[t, d] y = x -> linear(8) output y }}
      block g {{ input x: float[t, d] z = x -> relu output z }}
      {HEAD} y = x -> f(name="a") -> g(name="a") output y }}""",
    "a label that is a loop": f"""block blk(q) {{ input x: float[t, d] z = x -> q y = z -> sum(axis=q) output y }}
      {HEAD} repeat blocks[i] in 0..2 {{ pool e[3] = linear(8) }}
      y = x -> blk(e[0], name="blocks") -> blk(e[1], name="other") output y }}""",
    "members of the outer round in the inner": f"""{HEAD}{EXPERTS}
      repeat blocks[i] in 0..2 {{
        h = x -> linear(8) x = h -> p by g weight w: float[8] = zeros k = x + w novelty[i] = k -> tanh
        repeat inner[j] in 0..2 {{ q[i] = novelty[i] -> linear(8) s[j] = q[i] -> relu }}
      }} loss importance(g) output x }}""",
    "outputs, losses and targets of rounds": f"""{HEAD} h[0] = x
      repeat a[i] in 1..3 {{
        repeat b[j] in 0..2 {{ k[i] = h[i - 1] -> linear(8) }}
        h[i] = k[i] -> linear(8, name="proj") target t[i]: float[5, 8]
        output h[i] = h[i] -> linear(8) loss nov[i] = mse(h[i], t[i]) y[7] = h[i] -> linear(8)
      }} }}""",
    "an axis of the caller called as one of the block": f"""block blk {{
      input x: float[t, k, d] pool e[3] = linear(4) y = x -> e output y
    }} {HEAD} y = x -> unmerge(axis=-1, sizes=[2, 4], into=["e", ""]) -> blk output y }}""",
    "one pool for two parameters, or two": f"""block two(f, g) {{
      input x: float[t, d] u = x -> f -> sum(axis=f) y = u -> g -> sum(axis=g) output y
    }} {HEAD} pool p[4] = linear(8) pool q[4] = linear(8) a = x -> two(p, p) b = x -> two(p, q)
      y = a + b output y }}""",
    "a pool of a block with rounds, used in a block": """block blk { input x: float[d]
      repeat l[i] in 0..2 { h[i] = x -> linear(8) } y = h[1] + h[0] output y
    } block sends(p) { input x: float[t, d] y = x -> linear(8) -> p -> sum(axis=p) z = y -> mean(axis=t) output z }
    model m { input x: float[time, 8] pool p[4] = blk y = x -> sends(p) output y }""",
    "a pool of the model in a scan in a block": """block blk(p) { input x: float[t, d]
      scan x as z with h: float[8] { h = (h, z) -> concat -> linear(8) -> p -> sum(axis=p) yield h } as out output out
    } model m { input x: float[time, 8] pool p[4] = linear(8) y = x -> blk(p) z = y -> p -> sum(axis=p) output z }""",
    "scans that take values from outside": """model m { input x: float[time, 8] pool p[3] = linear(8)
      repeat b[i] in 9..11 { a = x -> mean(axis="time") -> linear(8) c = x -> linear(8) -> mean(axis="time")
        pool q[2] = linear(8)
        scan x as z with h: float[8] = c { h = (h, z, a, c) -> concat -> linear(8) -> q -> sum(axis=q) yield h } as x
      } output x }""",
    "a growth in a block": f"""block grows(p, g) {{ input x: float[t, d] y = x -> p by g
      grow p by g when batch_mean(g.gates -> max -> mean(axis=-1)) > 0.5
      state s: float[p, 8] = zeros next s = s * 0.9 output y
    }} {HEAD}{EXPERTS} y = x -> grows(p, g) output y }}""",
    "a block that hands on its input": f"""block same {{ input x: float[t, d] output x }}
      block adds {{ input x: float[t, d] weight w: float[8] = zeros y = x + w -> gumbel_noise output y }}
      {HEAD} y = x -> same -> adds -> adds output y }}""",
    "string keys, labels and a loop in a for in a block": f"""block blk {{ input x: float[t, d] y = x
      for k in 0..2 {{ y = y -> linear(8)
        repeat r[q] in 0..2 {{ z = y -> linear(8) pool p[2] = linear(4) v = z -> p }} }}
      output y
    }} {HEAD} y = x for s in 0..2 {{ y = y -> blk(name="a") }}
      repeat b[i] in ["left", "right"] {{
        target t[i]: class[3] l[i] = y -> mean -> linear(3) loss ce[i] = cross_entropy(l[i], t[i]) output l[i]
      }} }}""",
    "a router of some rounds, used outside": f"""{HEAD} pool p[4] = linear(8)
      repeat b[i] in 0..3 {{
        if i >= 1 {{ router g = noisy_top_k(2) x = x -> p by g }} h[i] = x -> linear(8)
        if i == 2 {{ k = (h[0], h[1]) -> concat }}
      }} loss importance(g) a = h -> mean output a }}""",
    "a pool in which a block stands whose pools are taken": f"""{SENDS}block deep(p, g) {{ input x: float[t, d]
      y = x -> sends(p, g) -> linear(8) z = y -> sends(p, g) output z
    }} {HEAD}{EXPERTS} y = x -> deep(p, g) -> deep(p, g) u = y -> p by g output u loss importance(g) }}""",
}
