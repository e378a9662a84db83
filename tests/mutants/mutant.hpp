// Relays and stores that break a promise on purpose, to see that the tests find it.
#pragma once

#include "mutants/worker.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace stela::mutants {

enum class Mutant : std::uint8_t {
  none,
  // The product's core between ports that change what passes (decorators.hpp).
  no_sort,
  no_park_behind,
  no_epoch_in_mark,
  drop_after_three_attempts,
  empty_list_means_all,
  fence_on_wrong_sequence,
  naive_pipeline,
  mark_before_ack,
  // A copy of the core with a fault in it (patches/).
  skip_failed_row,
  mark_on_timeout,
  no_read_back_at_acquisition,
  dedup_only,
  replies_not_matched,
  session_ends_on_miss,
  no_retry_after_miss,
  // What the simulator builds into the world around the core.
  reconnect_buffer,
  read_backs_one_by_one,
  enqueue_after_commit,
  replay_flag_left_on,
  // Between decisions and their store, in the simulator.
  no_condition,
  condition_at_commit,
  half_a_condition,
  reads_cut_short,
  append_id_ignored,
  // In what the statements of timers do, in the simulator.
  alarm_is_kept,
  alarm_is_early,
  move_is_lost,
  clear_is_lost,
  checkpoint_runs_ahead,
  // A copy of the consumer's core with a fault in it (consumer_patches/).
  position_apart,
  lease_not_checked,
  copies_are_handled,
  history_is_a_copy,
  history_by_its_time,
  parked_is_passed,
  waiting_is_charged,
  gap_is_kept_secret,
  late_is_a_copy,
  late_comes_again,
  generation_is_not_awaited,
  first_resize_is_awaited_only,
  those_who_wait_are_awaited,
  ends_without_the_filter,
  ends_are_kept,
  beginning_is_forgotten,
  place_is_not_compared,
  stream_is_trusted,
  forgotten_reader_stays,
  stream_is_looked_at_once,
  failure_is_committed,
  retried_stays_parked,
  parked_backwards,
  charge_is_kept,
  death_is_not_charged,
  unknown_is_a_failure,
};

std::string_view to_string(Mutant mutant) noexcept;
/// Throws std::invalid_argument if there is none of this name.
Mutant mutant_named(std::string_view name);

/// A worker with the mutant's fault; the product's own for `none` and for what isn't in a worker.
std::unique_ptr<Worker> make_worker(Mutant mutant, const RelayOptions& options, Fence fence,
                                    const Ports& ports);

}  // namespace stela::mutants
