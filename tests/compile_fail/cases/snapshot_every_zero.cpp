// snapshot_policy_every_needs_1_event_or_more
#include "../domain.hpp"

constexpr auto never = stela::SnapshotPolicy::every(0);
