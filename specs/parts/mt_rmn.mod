# MT-RMN, multi-task recurrent modular networks (Xu et al., AAAI 2021), for any multi-task recurrent model. The encoder
# has layers of sub-networks, and decides their connections anew at each time step. Each task has a decoder, which
# decides what it reads of the encoder. `x -> mt_rmn(tasks=["a", "b"])` gives a family, a vector for each task and time
# step.

# Linear maps, each with a ReLU: the paper's [5×5] is widths=[5, 5].
block mlp(widths) {
  input x: float[width]
  for i in 0..len(widths) {
    x = x -> linear(widths[i], name="linear") -> relu
  }
  output x
}

# A policy network: scores of two classes, disconnect and connect.
block policy_network(widths) {
  input x: float[width]
  scores = x -> mlp(widths, name="mlp") -> linear(2, name="scores")
  output scores
}

# Zero or one for a pair of scores. In training the result says whether the second is larger with Gumbel noise (equation
# 8), and the gradient is that of their softmax at a temperature (equation 9): the sigmoid of their difference.
block connection() {
  input scores: float[2]
  input temperature: float
  off, on = scores + (scores -> gumbel_noise) -> split(2)
  more = on - off -> select(0, axis=-1)
  gate = (more / temperature -> sigmoid, more -> above) -> straight_through
  output gate
}

# Connects senders to receivers. The receiver's policy decides by the sender's result and, where tasks have
# representations, by the task's (equation 6). A receiver runs on the mean of its connected senders (equation 4), or on
# the zero vector without any.
router connected(represented=false) for receiver, policy {
  input u: float[sender, dim]
  input temperature: float
  seen = u
  if represented {
    input task: float[width]
    seen = (u, (task, u) -> expand(axis=sender, at=-2)) -> concat
  }
  gates = (seen -> policy, temperature) -> connection
  record gates
  count = gates -> sum(axis=sender) -> clamp(min=1)
  y = u by (gates / count) over sender -> receiver
  output y
}

# The results of layers 2 to m of the encoder, and the number of open connections at each step. The first layer has
# recurrent cells, the others have `layers` sub-encoders each. With `recursive` all layers share their sub-encoders
# (rrn-RMN).
block routed_layers(cells, hidden, layers, widths, policies, recursive) {
  require not recursive or widths[len(widths) - 1] == hidden
  require not recursive or min(layers) == max(layers)
  input x: float[time, features]
  input temperature: float
  pool cell[cells] = lstm(hidden)
  if recursive {
    pool encoder[layers[0]] = mlp(widths)
    pool policy[encoder] = policy_network(policies)
  }
  u = x -> cell -> transpose("time", cell)
  repeat layer[l] in 0..len(layers) {
    if not recursive {
      pool encoder[layers[l]] = mlp(widths)
      pool policy[encoder] = policy_network(policies)
    }
    router gate = connected
    u = u -> encoder by gate(policy, temperature)
    made[l] = u
    open[l] = gate.gates -> sum(axis=-1) -> sum(axis=-1)
    output made[l]
  }
  total = open -> sum
  output total
}

# A task's decoder: one policy for all layers, and a sub-decoder for each layer. It gives their concatenated results,
# and the number of open connections.
block task_decoder(depth, widths, policies, represented) {
  input temperature: float
  for l in 0..depth {
    input made[l]: float[dim]
  }
  if represented > 0 {
    input task: float[time, width]
    module transform = linear(represented, bias=false)
  }
  pool policy[1] = policy_network(policies)
  repeat layer[l] in 0..depth {
    pool decoder[policy] = mlp(widths)
    if represented > 0 {
      router gate = connected(represented=true)
      read[l] = made[l] -> decoder by gate(policy, temperature, task -> transform) -> merge
    } else {
      router gate = connected
      read[l] = made[l] -> decoder by gate(policy, temperature) -> merge
    }
    open[l] = gate.gates -> sum(axis=-1) -> sum(axis=-1)
  }
  v = read -> concat
  total = open -> sum
  output v
  output total
}

# The whole model. `represented` is the width of W r for a task's representation r; representations are then further
# inputs, one for each task in order. `penalties` and `shares` are λ and γ of encoder and decoders (equations 10 and
# 11).
block mt_rmn(tasks, cells=4, hidden=5, layers=[3, 3], widths=[5, 5], policies=[5, 5], decoders=[5, 5],
             represented=0, recursive=false, frozen_encoder=false, penalties=[1.0, 1.0],
             shares=[0.75, 0.75]) {
  input x: float[time, features]
  for k in tasks {
    if represented > 0 {
      input task[k]: float[time, width]
    }
  }
  state temperature: float = constant(100)
  if frozen_encoder {
    frozen {
      module encoder = routed_layers(cells, hidden, layers, widths, policies, recursive)
    }
  } else {
    module encoder = routed_layers(cells, hidden, layers, widths, policies, recursive)
  }
  made, open = (x, temperature) -> encoder
  for k in tasks {
    module decoder = task_decoder(len(layers), decoders, policies, represented)
    if represented > 0 {
      v[k], read[k] = (temperature, made, task[k]) -> decoder
    } else {
      v[k], read[k] = (temperature, made) -> decoder
    }
    output v[k]
  }
  within = cells * layers[0]
  for l in 1..len(layers) {
    within = within + layers[l - 1] * layers[l]
  }
  loss encoder = penalties[0] * (relu(open - shares[0] * within) -> batch_mean("time"))
  loss decoders = penalties[1] * (relu((read -> sum) - shares[1] * len(tasks) * sum(layers))
                                  -> batch_mean("time"))
}
