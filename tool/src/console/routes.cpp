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

}  // namespace

std::span<const Route> all_routes() {
  return routes;
}

}  // namespace stela::tool
