// When snapshots of an aggregate are taken. Declare it in the aggregate: `static constexpr auto
// snapshot_policy = …`.
#pragma once

#include <concepts>
#include <cstdint>

namespace stela {

class SnapshotPolicy {
 public:
  /// The default.
  static constexpr SnapshotPolicy never() noexcept { return SnapshotPolicy{0, false}; }
  /// Only when the application calls `Repository::snapshot`.
  static constexpr SnapshotPolicy on_demand() noexcept { return SnapshotPolicy{0, true}; }
  /// After a save or a load if `events` or more events have no snapshot.
  static consteval SnapshotPolicy every(std::int64_t events) {
    if (events < 1) snapshot_policy_every_needs_1_event_or_more();
    return SnapshotPolicy{events, true};
  }

  constexpr bool uses_snapshots() const noexcept { return used_; }
  /// True after a load that read at least `events` events after the last snapshot.
  constexpr bool is_due_after_reading(std::int64_t events) const noexcept {
    return every_ > 0 && events >= every_;
  }
  /// True after a save from version `before` to `after` that passed a multiple of `every_`.
  constexpr bool is_due_after_saving(std::int64_t before, std::int64_t after) const noexcept {
    return every_ > 0 && before / every_ != after / every_;
  }

 private:
  /// Never defined. The compiler stops at the call and shows this name.
  static void snapshot_policy_every_needs_1_event_or_more();

  constexpr SnapshotPolicy(std::int64_t every, bool used) noexcept : every_{every}, used_{used} {}
  std::int64_t every_;
  bool used_;
};

namespace detail {

template <class A>
constexpr SnapshotPolicy snapshot_policy_of() {
  if constexpr (requires {
                  { A::snapshot_policy } -> std::convertible_to<SnapshotPolicy>;
                }) {
    return A::snapshot_policy;
  } else {
    return SnapshotPolicy::never();
  }
}

}  // namespace detail
}  // namespace stela
