"""Writes the gallery, a page with the picture and the costs of each shipped spec: python docs/gallery.py (ten seconds).

A picture shows the graph of inference. Boxes without pool and route are folded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import modgraph
from modgraph.inspect.cost import Cost
from modgraph.inspect.drawing import write_svg
from modgraph.inspect.scene import Box, Scene, scene_of
from modgraph.passes import apply_passes
from modgraph.passes.inference import InferenceOnly, Prune

DOCS = Path(__file__).parent
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "pictures/gallery"
RULE = "\n---\n\n"
ROOM = (760, 1000)  # pixels of a picture
ROUTING = ("pool", "router", "route")
HEAD = """# Gallery

Every spec that modgraph ships. `modgraph new mine --from zoo/mixtral` copies one with its imports and recipe,
`modgraph cost SPEC` prints its costs part by part, and `modgraph visualize SPEC` writes a page where every box opens.

Figures are of the defaults; `-s NAME=VALUE` sets other parameters. Multiply-accumulates (MACs) are those of one
example, with one token where sequences have any length. Active MACs count only the modules that a choice takes. The
pictures leave out losses and noise, and fold what routes nothing.

| spec | parameters | MACs | active MACs |
|---|---:|---:|---:|
"""


@dataclass(frozen=True)
class Entry:
    """A spec of the gallery: its name below `specs`, the paper and its address, and a section of the results."""

    name: str
    title: str
    sentence: str
    paper: tuple[str, str]
    results: str = ""

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(" ", "-").translate(str.maketrans("", "", ",:()"))

    @property
    def stem(self) -> str:
        return self.name.rpartition("/")[2]

    @cached_property
    def program(self) -> modgraph.Program:
        return modgraph.load(DOCS.parent / f"specs/{self.name}.mod")

    def write_row(self) -> str:
        cost: Cost = self.program.cost()
        counts = f"{cost.parameters:,} | {cost.macs:,} | {cost.active_macs:,}"
        return f"| [{self.title}](#{self.anchor}) | {counts} |\n"

    def write_section(self) -> str:
        links = [f"[{self.paper[0]}]({self.paper[1]})", f"[the spec](../specs/{self.name}.mod)"]
        links += [f"[its results](results.md#{self.results})"] if self.results else []
        picture = f"pictures/gallery/{self.stem}.svg"
        image = f"[![The graph of {self.stem}]({picture})]({picture})"
        return f"\n## {self.title}\n\n{self.sentence}\n\n{' · '.join(links)}\n\n{image}\n"

    def draw(self) -> str:
        """Draw its picture."""
        graph = apply_passes(self.program.ir, (InferenceOnly(), Prune()))
        scene = scene_of(graph)
        routing = any(box.kind in ROUTING for box in scene.walk())
        return write_svg(fold(scene) if routing else scene, room=ROOM)


def fold(scene: Scene) -> Scene:
    """Empty the boxes of a scene that contain neither pool nor route; their edges end at the boxes."""

    def without_parts(box: Box) -> Box:
        routing = any(inner.kind in ROUTING for inner in box.walk())
        return replace(box, children=tuple(map(without_parts, box.children)) if routing else ())

    def find_homes(box: Box, outer: str) -> None:
        homes[box.id] = box.id if box.id in kept else outer
        for child in box.children:
            find_homes(child, homes[box.id])

    boxes = tuple(map(without_parts, scene.boxes))
    kept = {inner.id for box in boxes for inner in box.walk()}
    homes: dict[str, str] = {}
    for box in scene.boxes:
        find_homes(box, box.id)
    edges = dict.fromkeys(replace(edge, source=homes[edge.source], target=homes[edge.target]) for edge in scene.edges)
    return replace(scene, boxes=boxes, edges=tuple(edge for edge in edges if edge.source != edge.target))


SMN = ("Hu et al., Scalable Modular Network, ICLR 2024", "https://openreview.net/forum?id=pEKJl5sflp")
MODULAR = ("Kirsch et al., Modular Networks, NeurIPS 2018", "https://arxiv.org/abs/1811.05249")
GMOE = ("Li et al., Sparse Mixture-of-Experts, ICLR 2023", "https://arxiv.org/abs/2206.04046")
SEMA = ("Wang et al., Self-Expansion of Pre-trained Models, CVPR 2025", "https://arxiv.org/abs/2403.18886")
MT_RMN = (
    "Xu et al., Multi-Task Recurrent Modular Networks, AAAI 2021",
    "https://ojs.aaai.org/index.php/AAAI/article/view/17256",
)
ENTRIES = (
    Entry(
        "smn",
        "Scalable Modular Network",
        "Specialists and router exchange messages for some rounds until they agree on who takes what of an image.",
        SMN,
        "scalable-modular-networks-hu-et-al-iclr-2024",
    ),
    Entry(
        "smn_parity",
        "Scalable Modular Network with added modules",
        "A trained network stays frozen, and added specialists and a new head learn another task from few labels.",
        SMN,
        "scalable-modular-networks-hu-et-al-iclr-2024",
    ),
    Entry(
        "modular_networks",
        "Modular Networks, regression",
        "A controller samples which of two linear maps takes a point, and EM trains both.",
        MODULAR,
        "modular-networks-kirsch-et-al-neurips-2018",
    ),
    Entry(
        "modular_networks_lm",
        "Modular Networks, language",
        "A GRU whose candidate state comes from a module that the controller samples at every word.",
        MODULAR,
        "modular-networks-kirsch-et-al-neurips-2018",
    ),
    Entry(
        "story",
        "Story",
        "A small language model: a router of each layer sends a token to two of eight experts.",
        ("Shazeer et al., Outrageously Large Neural Networks, ICLR 2017", "https://arxiv.org/abs/1701.06538"),
        "a-small-language-model",
    ),
    Entry(
        "modular_networks_images",
        "Modular Networks, images",
        "Three convolutions and two linear layers, each sampled from a pool of its own.",
        MODULAR,
        "modular-networks-kirsch-et-al-neurips-2018",
    ),
    Entry(
        "gmoe",
        "GMoE",
        "A vision transformer, ViT-S/16, in which two blocks have six experts in place of the MLP.",
        GMOE,
        "gmoe-li-et-al-iclr-2023",
    ),
    Entry(
        "gmoe_digits",
        "GMoE on digits",
        "The same architecture, small enough to learn rotated digits on a laptop.",
        GMOE,
        "gmoe-li-et-al-iclr-2023",
    ),
    Entry(
        "sema",
        "SEMA",
        "A frozen ViT-B/16 whose last three blocks add adapters when a batch of images is novel to the existing ones.",
        SEMA,
        "sema-wang-et-al-cvpr-2025",
    ),
    Entry(
        "sema_backbone",
        "Backbone of SEMA",
        "The small vision transformer that SEMA starts from in the tasks on digits and clothes.",
        SEMA,
        "sema-wang-et-al-cvpr-2025",
    ),
    Entry(
        "mt_rmn",
        "MT-RMN",
        "At every step of a sequence, each of four tasks chooses the sub-encoders that it reads.",
        MT_RMN,
        "mt-rmn-xu-et-al-aaai-2021",
    ),
    Entry(
        "zoo/mixtral",
        "Mixtral",
        "A language model of two of eight experts for each token; [maps](guides/published-weights.md) read the "
        "published weights of Mixtral, Qwen2-MoE and Qwen3-MoE.",
        ("Jiang et al., Mixtral of Experts, 2024", "https://arxiv.org/abs/2401.04088"),
    ),
    Entry(
        "zoo/olmoe",
        "OLMoE",
        "A language model of small experts, whose queries and keys are normalised over all heads; its "
        "[map](guides/published-weights.md) reads the published weights.",
        ("Muennighoff et al., OLMoE, 2024", "https://arxiv.org/abs/2409.02060"),
    ),
    Entry(
        "zoo/deepseek_v3",
        "DeepSeek-V3",
        "A language model with latent attention, whose tokens choose among the best groups of experts, balanced "
        "without a loss; [maps](guides/published-weights.md) read the published weights, and those of DeepSeek-V2.",
        ("DeepSeek-AI, DeepSeek-V3 Technical Report, 2024", "https://arxiv.org/abs/2412.19437"),
    ),
    Entry(
        "zoo/gpt_oss",
        "gpt-oss",
        "A language model with windows in every other layer, a sink for each head, and clamped experts; its "
        "[map](guides/published-weights.md) reads the published weights, of 4 bits too.",
        ("OpenAI, gpt-oss-120b & gpt-oss-20b Model Card, 2025", "https://arxiv.org/abs/2508.10925"),
    ),
    Entry(
        "zoo/qwen3_next",
        "Qwen3-Next",
        "A language model whose layers keep a matrix for each head, by the gated delta rule, and each fourth attends; "
        "its [map](guides/published-weights.md) reads the published weights.",
        ("Yang et al., Gated Delta Networks, ICLR 2025", "https://arxiv.org/abs/2412.06464"),
    ),
    Entry(
        "zoo/switch",
        "Switch Transformer",
        "A language model in which each token goes to one expert, which drops what exceeds its capacity in training.",
        ("Fedus et al., Switch Transformers, JMLR 2022", "https://arxiv.org/abs/2101.03961"),
    ),
    Entry(
        "zoo/expert_choice",
        "Expert choice",
        "A vision transformer whose experts choose their tokens, so that the load is even without a loss.",
        (
            "Zhou et al., Mixture-of-Experts with Expert Choice Routing, NeurIPS 2022",
            "https://arxiv.org/abs/2202.09368",
        ),
    ),
    Entry(
        "zoo/soft_moe",
        "Soft mixture of experts",
        "Experts read weighted means of the tokens, and tokens weighted means of the results: nothing is discrete.",
        ("Puigcerver et al., From Sparse to Soft Mixtures of Experts, ICLR 2024", "https://arxiv.org/abs/2308.00951"),
    ),
    Entry(
        "zoo/gcn",
        "Graph convolution",
        "Two layers that send each node's value along edges, weighted by the numbers of edges at both ends.",
        ("Kipf and Welling, Semi-Supervised Classification with GCNs, ICLR 2017", "https://arxiv.org/abs/1609.02907"),
    ),
    Entry(
        "zoo/gat",
        "Graph attention",
        "Two layers of attention over the edges of each node, with scores of the values at both ends.",
        ("Veličković et al., Graph Attention Networks, ICLR 2018", "https://arxiv.org/abs/1710.10903"),
    ),
    Entry(
        "zoo/graph_moe",
        "Mixture of experts on graphs",
        "Experts see neighbours, or those of neighbours too, and each node chooses two of four.",
        ("Wang et al., Graph Mixture of Experts, NeurIPS 2023", "https://arxiv.org/abs/2304.02806"),
    ),
)


def write_page() -> str:
    """Write the page, without the links to its neighbours."""
    rows = "".join(entry.write_row() for entry in ENTRIES)
    return f"{HEAD}{rows}{''.join(entry.write_section() for entry in ENTRIES)}"


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for each in ENTRIES:
        (PICTURES / f"{each.stem}.svg").write_text(each.draw())
    _, _, neighbours = PAGE.read_text().partition(RULE) if PAGE.exists() else ("", "", "")
    PAGE.write_text(f"{write_page()}{RULE}{neighbours}")
