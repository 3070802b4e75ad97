# MT-RMN (Xu et al., AAAI 2021) attached to a multi-task LSTM: several tasks on one sequence, each with its own kind of
# labels. The defaults are the paper's architecture for task-fMRI; recipes have those for tagging and clinical series.
import mt_rmn from "parts/mt_rmn.mod"

model multi_task(tasks=["first", "second", "third", "fourth"], classes=[7, 7, 7, 7], features=10,
                 vocabulary=0, embedded=50, every_step=false, state=16, represented=0, attached=true, cells=4,
                 hidden=5, layers=[3, 3], widths=[5, 5], policies=[5, 5], decoders=[5, 5], recursive=false,
                 frozen_encoder=false, penalties=[1.0, 1.0], shares=[0.75, 0.75]) {
  require len(classes) == len(tasks)  # 0 classes: the labels are numbers
  if vocabulary > 0 {
    input words: token[time, vocabulary]
    x = words -> embedding(embedded)
  } else {
    input series: float[time, features]
    x = series
  }

  if represented > 0 {  # an LSTM for each task, whose state represents the task for its policies
    for k in tasks {
      h[k] = x -> lstm(state)
    }
  } else {  # one LSTM for all
    shared = x -> lstm(state)
    for k in tasks {
      h[k] = shared
    }
  }
  if attached {
    module rmn = mt_rmn(tasks, cells, hidden, layers, widths, policies, decoders, represented, recursive,
                        frozen_encoder, penalties, shares)
    if represented > 0 {
      v = (x, h) -> rmn
    } else {
      v = x -> rmn
    }
    for k in tasks {
      h[k] = (h[k], v[k]) -> concat
    }
  }

  for i in 0..len(tasks) {
    k = tasks[i]
    y = h[k]
    if not every_step {
      y = y -> last(axis="time")
    }
    if classes[i] == 0 and every_step {
      target label[k]: float[time]
    } else if classes[i] == 0 {
      target label[k]: float
    } else if every_step {
      target label[k]: class[time, classes[i]]
    } else {
      target label[k]: class[classes[i]]
    }
    if classes[i] > 0 {
      prediction[k] = y -> linear(classes[i])
      loss task[k] = cross_entropy(prediction[k], label[k])
    } else {
      prediction[k] = y -> linear(1) -> sum(axis=-1)
      loss task[k] = mse(prediction[k], label[k])
    }
    output prediction[k]
  }
}
