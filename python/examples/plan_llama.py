# SPDX-License-Identifier: Apache-2.0
"""Plans Llama 3 70B on 512 H100 and plots the Pareto front."""

import weir

search = weir.plan(
    model="llama-3-70b", cluster="dgx-h100", gpus=512, gbs=1024, objective="pareto",
    tp=[4, 8], pp=[4, 8], mbs=1, recompute="none", schedule="1f1b,interleaved-1f1b")
for plan in search:
    print(plan)
report = search.result()
report.draw().save("pareto.svg")
print(report)
