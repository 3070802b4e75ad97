# MT-RMN by itself, as any multi-task model imports it.
import mt_rmn from "../../specs/parts/mt_rmn.mod"

model standalone(tasks=["a", "b"], represented=0, cells=3, layers=[3, 2], recursive=false,
                 penalties=[1.0, 1.0], shares=[0.75, 0.75]) {
  input x: float[time, 4]
  if represented > 0 {
    for k in tasks {
      input r[k]: float[time, 6]
    }
  }
  module rmn = mt_rmn(tasks, cells, 5, layers, [4, 5], [6, 4], [3, 4], represented, recursive,
                      penalties=penalties, shares=shares)
  if represented > 0 {
    v = (x, r) -> rmn
  } else {
    v = x -> rmn
  }
  for k in tasks {
    output v[k]
  }
}
