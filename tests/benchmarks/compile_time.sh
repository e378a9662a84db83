#!/usr/bin/env bash
# How long a user's file takes to compile: the domain of docs/guides/test-a-domain.md's kind, with a
# repository and the SQLite store. Needs a build of preset release (or the one that is named).
#   tests/benchmarks/compile_time.sh [preset]
set -euo pipefail
cd "$(dirname "$0")/../.."

preset=${1:-release}
build=build/$preset
if [[ ! -d $build ]]; then
  echo "there is no $build: cmake --preset $preset && cmake --build --preset $preset" >&2
  exit 1
fi
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
includes=()
for module in framework eventstore outbox projections; do
  includes+=("-I$module/include" "-I$build/$module/include")
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/empty.cpp" <<'CPP'
int main() {}
CPP
cat >"$work/domain.cpp" <<'CPP'
#include <stela/framework.hpp>

struct Placed {
  static constexpr stela::EventType event_type{"order.placed", 1, stela::should_publish};
  std::string customer;
  std::int64_t cents = 0;
  template <class Archive> void serialize(Archive& ar) { ar(CEREAL_NVP(customer), CEREAL_NVP(cents)); }
};
struct Shipped {
  static constexpr stela::EventType event_type{"order.shipped", 1, stela::local};
  std::string carrier;
  template <class Archive> void serialize(Archive& ar) { ar(CEREAL_NVP(carrier)); }
};
struct State {
  bool placed = false;
  void apply(const Placed&) { placed = true; }
  void apply(const Shipped&) {}
};
class Order : public stela::AggregateRoot<State, stela::EventSet<Placed, Shipped>> {
 public:
  static constexpr std::string_view category = "order";
  using AggregateRoot::AggregateRoot;
  void ship(std::string carrier) { record(Shipped{std::move(carrier)}); }
};
void ship(stela::EventLog& log, const stela::Id<Order>& id) {
  stela::Repository<Order> orders{log};
  Order order = orders.load(id);
  order.ship("dhl");
  orders.save(order);
}
CPP
{
  sed 's|#include <stela/framework.hpp>|#include <stela/eventstore.hpp>\n#include <stela/framework.hpp>\n#include <stela/outbox.hpp>|' "$work/domain.cpp"
  echo 'int main() { auto store = stela::sqlite::open("shop.db"); stela::Outbox outbox{store}; ship(store, stela::Id<Order>::generate()); }'
} >"$work/application.cpp"

# The time of the processor: others may be using the machine.
seconds_of() {
  local TIMEFORMAT='%U %S'
  { time "$compiler" -std=c++20 "$2" "${includes[@]}" -c "$work/$1.cpp" -o "$work/$1.o" 2>/dev/null; } 2>&1 |
    awk '{ printf "%.2f", $1 + $2 }'
}
best_of_three() {
  for _ in 1 2 3; do
    seconds_of "$@"
    echo
  done | sort -n | head -1
}
printf '%-14s %8s %8s\n' "seconds" "-O0" "-O2"
for file in empty domain application; do
  printf '%-14s %8s %8s\n' "$file" "$(best_of_three "$file" -O0)" "$(best_of_three "$file" -O2)"
done
