#include "console/routes.hpp"

namespace stela::tool {
namespace {

constexpr Route routes[] = {
    {"check", false, true},
    {"why", true, true},
    {"log"},
    {"changes"},
    {"findings known"},
    {"outbox status", false},
    {"outbox history"},
    {"outbox list"},
    {"outbox show", false},
    {"outbox groups"},
    {"outbox workers"},
    {"outbox partitions list"},
    {"events list"},
    {"events show", false},
    {"events tree"},
    {"events query"},
    {"events head", false},
    {"events stats"},
    {"streams list"},
    {"streams show"},
    {"streams state", false},
    {"snapshots list"},
    {"tags list"},
    {"tags show"},
    {"tags types"},
    {"projections status"},
    {"projections list"},
    {"processes list"},
    {"processes show", false},
    {"timers list"},
    {"timers show", false},
    {"timers log"},
    {"inbox status"},
    {"inbox list"},
    {"inbox gaps"},
    {"config show"},
};

constexpr Action actions[] = {
    {"outbox retry", true, true},
    {"outbox discard", true, true},
    {"outbox partitions retry", false, true},
    {"outbox partitions resume"},
    {"outbox partitions adopt", true, true},
    {"projections retry"},
    {"projections skip", true},
    {"projections cancel"},
    {"timers move"},
    {"timers cancel", true},
    {"timers fire"},
    {"timers retry"},
    {"timers hold"},
    {"timers resume", true, true},
    {"inbox retry"},
    {"inbox discard", true},
    {"inbox pause"},
    {"inbox resume"},
    {"findings ack"},
    {"findings unack"},
};

}  // namespace

std::span<const Route> all_routes() {
  return routes;
}

std::span<const Action> all_actions() {
  return actions;
}

}  // namespace stela::tool
