# SPDX-License-Identifier: Apache-2.0
"""Builds a schedule from a function, lints it, simulates it and exports it."""

import weir


def one_f_one_b(rank, num_ranks, num_microbatches):
    forward = [(m, (rank, "F", m)) for m in range(num_microbatches)]
    backward = [(m + num_ranks - rank - 0.5, (rank, "B", m)) for m in range(num_microbatches)]
    return [action for _, action in sorted(forward + backward)]


schedule = weir.schedule(one_f_one_b, num_ranks=4, num_microbatches=8)
print(schedule.lint("pytorch"))
print(weir.simulate(schedule=schedule, costs="f=1,b=2"))
schedule.save("one-f-one-b.csv")
