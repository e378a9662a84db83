#include "console/routes.hpp"

namespace stela::tool {
namespace {

/// Neither the routes nor the actions include a command of `privacy`: people and their keys are
/// reserved to the owners of the key store's file.
constexpr Route routes[] = {
    {"check", Grant::view, false, true},
    {"why", Grant::view, true, true},
    {"log", Grant::view},
    {"changes", Grant::view},
    {"findings known", Grant::view},
    {"outbox status", Grant::view, false},
    {"outbox history", Grant::view},
    {"outbox list", Grant::view},
    {"outbox show", Grant::view, false},
    {"outbox groups", Grant::view},
    {"outbox workers", Grant::view},
    {"outbox partitions list", Grant::view},
    {"events list", Grant::view},
    {"events show", Grant::view, false},
    {"events tree", Grant::view},
    {"events query", Grant::view},
    {"events head", Grant::view, false},
    {"events stats", Grant::view},
    {"streams list", Grant::view},
    {"streams show", Grant::view},
    {"streams state", Grant::view, false, false, true},
    {"snapshots list", Grant::view},
    {"tags list", Grant::payloads},
    {"tags show", Grant::payloads},
    {"tags types", Grant::view},
    {"projections status", Grant::view},
    {"projections list", Grant::view},
    {"projections history", Grant::view},
    {"topology", Grant::view, false},
    {"processes list", Grant::view},
    {"processes show", Grant::view, false},
    {"timers list", Grant::view},
    {"timers show", Grant::view, false},
    {"timers log", Grant::view},
    {"inbox status", Grant::view},
    {"inbox list", Grant::view},
    {"inbox gaps", Grant::view},
    {"config show", Grant::view},
};

constexpr Action actions[] = {
    {"outbox retry", Grant::operate, true, true},
    {"outbox discard", Grant::operate, true, true},
    {"outbox partitions retry", Grant::operate, false, true},
    {"outbox partitions resume", Grant::admin},
    {"outbox partitions adopt", Grant::admin, true, true},
    {"outbox reconcile", Grant::operate},
    {"outbox republish", Grant::operate, true},
    {"projections rebuild", Grant::admin},
    {.command = "verify", .grant = Grant::operate, .quotes_payloads = true},
    {"projections retry", Grant::operate},
    {"projections skip", Grant::operate, true},
    {"projections cancel", Grant::operate},
    {"timers move", Grant::operate},
    {"timers cancel", Grant::operate, true},
    {"timers fire", Grant::operate},
    {"timers retry", Grant::operate},
    {"timers hold", Grant::operate},
    {"timers resume", Grant::operate, true, true},
    {"inbox retry", Grant::operate},
    {"inbox discard", Grant::operate, true},
    {"inbox pause", Grant::operate},
    {"inbox resume", Grant::operate},
    {"findings ack", Grant::operate},
    {"findings unack", Grant::operate},
};

}  // namespace

std::span<const Route> all_routes() {
  return routes;
}

std::span<const Action> all_actions() {
  return actions;
}

bool searches_payloads(std::string_view option) {
  return option == "--tag" || option == "--error";
}

bool has_private_text(std::string_view option) {
  return searches_payloads(option) || option == "--why";
}

}  // namespace stela::tool
