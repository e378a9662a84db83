#include "mutants/mutant.hpp"

#include "mutants/decorators.hpp"
#include "mutants/patched.hpp"
#include "relay/worker.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace stela::mutants {
namespace {

using Make = std::unique_ptr<Worker> (*)(const RelayOptions&, Fence, const Ports&);

std::unique_ptr<Worker> make_plain(const RelayOptions& options, Fence fence, const Ports& ports) {
  return std::make_unique<WorkerOf<relay::Worker>>(options, fence, ports);
}

template <class Decorator>
std::unique_ptr<Worker> with_store(const RelayOptions& options, Fence fence, const Ports& ports) {
  return std::make_unique<WorkerOf<relay::Worker>>(
      options, fence, ports, Decorators{.store = std::make_unique<Decorator>(ports.store)});
}

template <class Decorator>
std::unique_ptr<Worker> with_publisher(const RelayOptions& options, Fence fence,
                                       const Ports& ports) {
  return std::make_unique<WorkerOf<relay::Worker>>(
      options, fence, ports, Decorators{.publisher = std::make_unique<Decorator>(ports.publisher)});
}

struct Entry {
  std::string_view name;
  Make make = make_plain;
};

/// In the order of `Mutant`.
constexpr std::array entries{
    Entry{"none"},
    Entry{"no_sort", with_store<NoSort>},
    Entry{"no_park_behind", with_store<NoParkBehind>},
    Entry{"no_epoch_in_mark", with_store<NoEpochInMark>},
    Entry{"drop_after_three_attempts", with_store<DropAfterThreeAttempts>},
    Entry{"empty_list_means_all", with_store<EmptyListMeansAll>},
    Entry{"fence_on_wrong_sequence", with_publisher<FenceOnWrongSequence>},
    Entry{"naive_pipeline", with_publisher<NaivePipeline>},
    Entry{"mark_before_ack", with_publisher<MarkBeforeAck>},
    Entry{"skip_failed_row", patched::skip_failed_row},
    Entry{"mark_on_timeout", patched::mark_on_timeout},
    Entry{"no_read_back_at_acquisition", patched::no_read_back_at_acquisition},
    Entry{"dedup_only", patched::dedup_only},
    Entry{"replies_not_matched", patched::replies_not_matched},
    Entry{"session_ends_on_miss", patched::session_ends_on_miss},
    Entry{"no_retry_after_miss", patched::no_retry_after_miss},
    Entry{"reconnect_buffer"},
    Entry{"read_backs_one_by_one"},
    Entry{"enqueue_after_commit"},
    Entry{"replay_flag_left_on"},
    Entry{"no_condition"},
    Entry{"condition_at_commit"},
    Entry{"half_a_condition"},
    Entry{"reads_cut_short"},
    Entry{"append_id_ignored"},
    Entry{"alarm_is_kept"},
    Entry{"alarm_is_early"},
    Entry{"move_is_lost"},
    Entry{"clear_is_lost"},
    Entry{"checkpoint_runs_ahead"},
    Entry{"position_apart"},
    Entry{"lease_not_checked"},
    Entry{"copies_are_handled"},
    Entry{"history_is_a_copy"},
    Entry{"history_by_its_time"},
    Entry{"parked_is_passed"},
    Entry{"waiting_is_charged"},
    Entry{"gap_is_kept_secret"},
    Entry{"late_is_a_copy"},
    Entry{"late_comes_again"},
    Entry{"generation_is_not_awaited"},
    Entry{"first_resize_is_awaited_only"},
    Entry{"those_who_wait_are_awaited"},
    Entry{"ends_without_the_filter"},
    Entry{"ends_are_kept"},
    Entry{"beginning_is_forgotten"},
    Entry{"place_is_not_compared"},
    Entry{"stream_is_trusted"},
    Entry{"forgotten_reader_stays"},
    Entry{"stream_is_looked_at_once"},
    Entry{"failure_is_committed"},
    Entry{"retried_stays_parked"},
    Entry{"parked_backwards"},
    Entry{"charge_is_kept"},
    Entry{"death_is_not_charged"},
    Entry{"unknown_is_a_failure"},
};
static_assert(entries.size() == static_cast<std::size_t>(Mutant::unknown_is_a_failure) + 1);

const Entry& entry(Mutant mutant) noexcept {
  return entries[static_cast<std::size_t>(mutant)];
}

}  // namespace

std::string_view to_string(Mutant mutant) noexcept {
  return entry(mutant).name;
}

Mutant mutant_named(std::string_view name) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == name) return static_cast<Mutant>(i);
  }
  throw std::invalid_argument{"there is no mutant '" + std::string{name} + "'"};
}

std::unique_ptr<Worker> make_worker(Mutant mutant, const RelayOptions& options, Fence fence,
                                    const Ports& ports) {
  return entry(mutant).make(options, fence, ports);
}

}  // namespace stela::mutants
