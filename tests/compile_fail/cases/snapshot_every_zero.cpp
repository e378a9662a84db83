// stela: SnapshotPolicy::every needs 1 event or more
#include "../domain.hpp"

constexpr auto never = stela::SnapshotPolicy::every(0);
