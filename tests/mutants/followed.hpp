// The followers of the copies: each is defined in a file that the build makes.
#pragma once

#include "mutants/follower.hpp"

#include <memory>

namespace stela::mutants::followed {

using Make = std::unique_ptr<Follower>(Store&, const nats::ConsumerOptions&, nats::ConsumerPorts);

Make unchanged;
Make position_apart;
Make lease_not_checked;
Make copies_are_handled;
Make history_is_a_copy;
Make history_by_its_time;
Make parked_is_passed;
Make waiting_is_charged;
Make gap_is_kept_secret;
Make late_is_a_copy;
Make late_comes_again;
Make generation_is_not_awaited;
Make first_resize_is_awaited_only;
Make those_who_wait_are_awaited;
Make ends_without_the_filter;
Make ends_are_kept;
Make beginning_is_forgotten;
Make place_is_not_compared;
Make stream_is_trusted;
Make forgotten_reader_stays;
Make stream_is_looked_at_once;
Make failure_is_committed;
Make retried_stays_parked;
Make parked_backwards;
Make charge_is_kept;
Make death_is_not_charged;
Make unknown_is_a_failure;

}  // namespace stela::mutants::followed
