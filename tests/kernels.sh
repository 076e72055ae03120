#!/usr/bin/env bash
# Runs the tests of the agents under settings that choose other kernels, one after the other: `tests/kernels.sh .venv/bin -n 2`.
#
# Three libraries compute: torch's own kernels (ATEN_CPU_CAPABILITY), MKL's matrix products (MKL_CBWR) and oneDNN's
# (ONEDNN_MAX_CPU_ISA). Each knows its own instruction sets, and a test compares results of one process. So every value stands
# once, beside those of the others for the same age of processor; the product of all would only mix them. All tests run on the
# newest kernels with two threads and on the oldest with one. Between these, and on kernels of no machine
# (tests/agents/kernels.py), run the files that compare numbers or learn: those that import `rounding` or `corridor`.
set -uo pipefail
bin=$1
shift
failed=()
# shellcheck disable=SC2207 # names without spaces
compared=($(grep -lE 'agents.rounding|agents import corridor|agents.corridor' tests/agents/test_*.py))

run() { # settings -- arguments of pytest
  local settings=()
  while [ "$1" != -- ]; do
    settings+=("$1")
    shift
  done
  shift
  echo "== ${settings[*]}"
  env "${settings[@]}" "$bin/pytest" -q "$@" || failed+=("${settings[*]}")
}

run OMP_NUM_THREADS=2 -- tests/agents "$@"
run ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41 OMP_NUM_THREADS=1 -- tests/agents "$@"
has=$("$bin/python" -c 'import torch; print(torch.backends.cpu.get_cpu_capability())')
if [[ $has == AVX2 || $has == AVX512 ]]; then
  run ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=1 -- "${compared[@]}" "$@"
else
  echo "== not run: avx2, which this processor ($has) does not have"
fi
if [[ $has == AVX512 ]]; then
  run ATEN_CPU_CAPABILITY=avx512 MKL_CBWR=AVX512 ONEDNN_MAX_CPU_ISA=AVX512_CORE OMP_NUM_THREADS=1 -- "${compared[@]}" "$@"
else
  echo "== not run: avx512, which this processor ($has) does not have; torch would use it if told to, and crash"
fi
for seed in 1 2; do
  run RLVR_ROUNDING=$seed OMP_NUM_THREADS=1 -- "${compared[@]}" "$@"
done

if ((${#failed[@]})); then
  printf 'failed with %s\n' "${failed[@]}"
  exit 1
fi
