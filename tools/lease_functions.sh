# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # variables shared with tools/lease
# Functions of tools/lease, which sources this file.

# Prints the path of the library $1 on this machine.
find_library() {
  wheels=$(python3 -c 'import site, sysconfig
print(*site.getsitepackages(), sysconfig.get_paths()["purelib"])' 2>/dev/null)
  for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64 \
    /usr/local/cuda/lib /usr/local/cuda/targets/x86_64-linux/lib \
    /usr/lib/x86_64-linux-gnu /usr/local/lib \
    $(for wheel in $wheels; do echo "$wheel"/nvidia/*/lib; done); do
    [ -e "$folder/$1" ] && echo "$folder/$1" && return
  done
  ldconfig -p 2>/dev/null | sed -n "s|^.*$1 .*=> ||p" | head -n 1
}

unxz_bundle() {
  if command -v xz >/dev/null; then
    xz -dc "$bundle" >"$work/bundle.tar"
  else
    cp "$here/xz" "$work/xz"
    chmod +x "$work/xz"
    LD_LIBRARY_PATH=$here "$work/xz" -dc "$bundle" >"$work/bundle.tar"
  fi
}

# Logs clocks in the background, with as many columns as this nvidia-smi has.
# Ends by itself if this script is killed.
log_clocks() {
  for columns in power.draw.instant,clocks_event_reasons.active \
    power.draw,clocks_throttle_reasons.active power.draw; do
    columns=timestamp,clocks.sm,clocks.mem,temperature.gpu,$columns
    query "$columns" >/dev/null || continue
    echo "$columns" >"$work/clocks.csv"
    set -- timeout "$((seconds + 60))" nvidia-smi -i "$gpu" -lms 250 \
      --query-gpu="$columns" --format=csv,noheader,nounits
    ! command -v stdbuf >/dev/null || set -- stdbuf -oL "$@"
    "$@" >>"$work/clocks.csv" 2>/dev/null &
    clocks_pid=$!
    return
  done
  say "nvidia-smi reports no clocks: they are not logged"
}

max_bytes=${WEIR_LEASE_BYTES:-12000000}
left_out=
# Packs all results. Only a complete archive replaces that of the step before.
pack() {
  pack_begin=$(date +%s)
  [ ! -f "$work/clocks.csv" ] || cp "$work/clocks.csv" "$folder/clocks-$call.csv"
  new=$out/results.tar.gz.new
  while :; do
    for file in $left_out; do echo "$file"; done >"$work/left_out"
    tar -czf "$new" -C "$work/results" -X "$work/left_out" .
    # 1: a file was written meanwhile.
    if [ $? -gt 1 ] || ! gzip -t "$new"; then
      say "$new cannot be written"
      break
    fi
    if [ "$(wc -c <"$new")" -le "$max_bytes" ]; then
      mv -f "$new" "$out/results.tar.gz"
      break
    fi
    file=$(cd "$work/results" && find . -type f ! -name '*.status' |
      grep -vxF -f "$work/left_out" | xargs wc -c | grep -v ' total$' |
      sort -rn | sed -n '1s/^ *[0-9]* //p')
    if [ -z "$file" ]; then
      say "$new exceeds $max_bytes bytes"
      break
    fi
    left_out="$left_out $file"
  done
  pack_seconds=$(($(date +%s) - pack_begin))
}

# Prints the median clock and the highest power between two times.
clocks_between() {
  [ -f "$work/clocks.csv" ] || return
  awk -F ', *' -v from="$1" -v to="$2" '
    { time = substr($1, 1, 19); sub(" ", "_", time) }
    NR > 1 && time >= from && time <= to { print $2, $5 }
    ' "$work/clocks.csv" | sort -n | awk '
    { clock[NR] = $1; if ($2 + 0 > power) power = $2 + 0 }
    END { if (NR) printf "%d MHz, %.0f W", clock[int((NR + 1) / 2)], power }'
}

# Prints the lines of a log that state a failure, or its last lines.
show_failure() {
  patterns='^\[  FAILED  \].*ms\)|^(wrong|refused|error|warning|skipped|n/a)|^=* (ERROR|Invalid)'
  lines=$(grep -hE "$patterns" "$1" | sort | uniq -c | sort -rn | head -n 8)
  [ -n "$lines" ] || lines=$(tail -n 6 "$1")
  echo "$lines" | cut -c 1-200 | sed 's/^/    /'
}

# Prints a table of the steps of this GPU.
summarize() {
  echo "call $call on $card: $(($(date +%s) - begin)) of $seconds s"
  printf '%-24s %-9s %5s %8s %5s  %s\n' step verdict exit seconds call clocks
  for name in $steps; do
    if [ -f "$folder/steps/$name.status" ]; then
      read -r verdict code took during clocks <"$folder/steps/$name.status"
      printf '%-24s %-9s %5s %8s %5s  %s\n' "$name" "$verdict" "$code" "$took" \
        "$during" "$clocks"
      [ "$verdict" = passes ] || show_failure "$folder/steps/$name.log"
    elif [ -f "$folder/steps/$name.attempts" ]; then
      echo "$name is unfinished"
    fi
  done
  for file in $left_out; do
    echo "left out, as the archive may have $max_bytes bytes: $file"
  done
  for other in "$work/results"/*/steps; do
    [ "$other" = "$folder/steps" ] ||
      echo "results of another GPU: $(basename "${other%/steps}")"
  done
}
