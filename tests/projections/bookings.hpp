// A hotel's bookings, and the process that cancels those that aren't paid in time.
#pragma once

#include <stela/projections.hpp>
#include <stela/testing/manual_clock.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stela::test {

struct Requested {
  static constexpr EventType event_type{"booking.requested", 1, local};
  std::int64_t minutes = 15;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(minutes));
  }
};
struct Paid {
  static constexpr EventType event_type{"booking.paid", 1, local};
};
struct Cancelled {
  static constexpr EventType event_type{"booking.cancelled", 1, local};
  std::string reason;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(reason));
  }
};

struct BookingState {
  bool is_open = false;
  void apply(const Requested&) { is_open = true; }
  void apply(const Paid&) { is_open = false; }
  void apply(const Cancelled&) { is_open = false; }
};
class Booking : public AggregateRoot<BookingState, EventSet<Requested, Paid, Cancelled>> {
 public:
  static constexpr std::string_view category = "booking";
  using AggregateRoot::AggregateRoot;
  void request(std::int64_t minutes) { record(Requested{minutes}); }
  void pay() { record(Paid{}); }
  void cancel(std::string reason) { record(Cancelled{std::move(reason)}); }
};

struct NotPaid {
  static constexpr TimerType timer_type{"not_paid", 1};
  Id<Booking> booking;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(booking));
  }
};
struct Remind {
  static constexpr TimerType timer_type{"remind", 1};
};

/// What a test may let happen when a timer is due.
using DueHook = std::function<void(stela::Process&, const std::string& kind)>;

class PaymentDeadline {
 public:
  static constexpr ProcessType process_type{"payment_deadline"};
  using Events = EventSet<Requested, Paid, Cancelled>;
  using Timers = TimerSet<NotPaid, Remind>;

  explicit PaymentDeadline(DueHook on_due = {}) : on_due_{std::move(on_due)} {}

  void react(stela::Process& process, const Recorded<Requested>& e) {
    process.set(NotPaid{Id<Booking>::of(e.stream())},
                e.recorded_at() + std::chrono::minutes{e->minutes});
  }
  void react(stela::Process& process, const Recorded<Paid>&) {
    process.clear<NotPaid>();
    process.clear<Remind>();
  }
  void react(stela::Process& process, const Recorded<Cancelled>&) { process.clear<Remind>(); }

  void due(stela::Process& process, const NotPaid& timer) {
    if (on_due_) on_due_(process, "not_paid");
    auto& booking = process.unit().load(timer.booking);
    if (booking.state().is_open) booking.cancel("not paid in time");
  }
  void due(stela::Process& process, const Remind&) {
    if (on_due_) on_due_(process, "remind");
  }

 private:
  DueHook on_due_;
};

inline void request(EventStore& store, const std::string& key, std::int64_t minutes = 15) {
  Repository<Booking> bookings{store};
  Booking booking{Id<Booking>::from(key)};
  booking.request(minutes);
  bookings.save(booking);
}
inline void pay(EventStore& store, const std::string& key) {
  Repository<Booking> bookings{store};
  Booking booking = bookings.load(Id<Booking>::from(key));
  booking.pay();
  bookings.save(booking);
}

/// "1 requested, 1 cancelled": the types of a booking's events, in order.
inline std::vector<std::string> history(EventStore& store,
                                        const std::string& category = "booking") {
  std::vector<std::string> all;
  for (const StoredEvent& event : store.read_all({.categories = {category}})) {
    all.push_back(std::string{event.stream.key()} + ' ' + event.type().substr(category.size() + 1));
  }
  return all;
}

}  // namespace stela::test
