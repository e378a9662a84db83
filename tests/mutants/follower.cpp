#include "mutants/follower.hpp"

#include "mutants/followed.hpp"

namespace stela::mutants {
namespace {

struct Entry {
  Mutant mutant;
  followed::Make* make;
};

constexpr Entry entries[] = {
    {Mutant::position_apart, followed::position_apart},
    {Mutant::lease_not_checked, followed::lease_not_checked},
    {Mutant::copies_are_handled, followed::copies_are_handled},
    {Mutant::history_is_a_copy, followed::history_is_a_copy},
    {Mutant::history_by_its_time, followed::history_by_its_time},
    {Mutant::parked_is_passed, followed::parked_is_passed},
    {Mutant::waiting_is_charged, followed::waiting_is_charged},
    {Mutant::gap_is_kept_secret, followed::gap_is_kept_secret},
    {Mutant::late_is_a_copy, followed::late_is_a_copy},
    {Mutant::late_comes_again, followed::late_comes_again},
    {Mutant::generation_is_not_awaited, followed::generation_is_not_awaited},
    {Mutant::first_resize_is_awaited_only, followed::first_resize_is_awaited_only},
    {Mutant::those_who_wait_are_awaited, followed::those_who_wait_are_awaited},
    {Mutant::ends_without_the_filter, followed::ends_without_the_filter},
    {Mutant::ends_are_kept, followed::ends_are_kept},
    {Mutant::beginning_is_forgotten, followed::beginning_is_forgotten},
    {Mutant::place_is_not_compared, followed::place_is_not_compared},
    {Mutant::stream_is_trusted, followed::stream_is_trusted},
    {Mutant::forgotten_reader_stays, followed::forgotten_reader_stays},
    {Mutant::stream_is_looked_at_once, followed::stream_is_looked_at_once},
    {Mutant::failure_is_committed, followed::failure_is_committed},
    {Mutant::retried_stays_parked, followed::retried_stays_parked},
    {Mutant::parked_backwards, followed::parked_backwards},
    {Mutant::charge_is_kept, followed::charge_is_kept},
    {Mutant::death_is_not_charged, followed::death_is_not_charged},
    {Mutant::unknown_is_a_failure, followed::unknown_is_a_failure},
};

followed::Make* maker_of(Mutant mutant) noexcept {
  for (const Entry& entry : entries) {
    if (entry.mutant == mutant) return entry.make;
  }
  return followed::unchanged;
}

}  // namespace

std::unique_ptr<Follower> make_follower(Mutant mutant, Store& store,
                                        const nats::ConsumerOptions& options,
                                        nats::ConsumerPorts ports) {
  return maker_of(mutant)(store, options, std::move(ports));
}

}  // namespace stela::mutants
