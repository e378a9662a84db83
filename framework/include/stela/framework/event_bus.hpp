// Typed listeners for committed events.
#pragma once

#include <stela/framework/event_set.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace stela {

/// Calls listeners after each commit of a store, on the committing thread, in the order in which
/// they were connected. If a listener throws, the error goes to the error sink, and the other
/// listeners are still called. A replay commits nothing, so it calls no listeners.
///
///     EventBus bus{store};
///     auto mails = bus.on<OrderShipped>([&](const Recorded<OrderShipped>& e) { mail(e->carrier);
///     });
///
/// Threads: listeners may be connected and disconnected from any thread. They are called on the
/// threads that commit, possibly several at once.
class STELA_FRAMEWORK_EXPORT EventBus {
 public:
  using ErrorSink = std::function<void(const StoredEvent&, std::exception_ptr)>;

  /// The source of events: every commit, or only what is passed to `deliver`.
  enum class Feed : std::uint8_t { commits, deliver };

  /// Without an error sink, errors go to the store's log. `store` must outlive the bus.
  explicit EventBus(EventStore& store, ErrorSink on_error = {}, Feed feed = Feed::commits);
  ~EventBus();
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;

  /// Calls `listener(const Recorded<E>&)` for each `E`, and for each event that `E` supersedes,
  /// converted to `E`. Events that it saves name this event as their cause.
  template <Event E, class Listener>
  [[nodiscard]] Subscription on(Listener listener) {
    static_assert(detail::check_event<E>());
    return connect([reading = reading(), listener = std::move(listener)](const StoredEvent& event) {
      if (!detail::is_stored_form_of<E>(event.kind)) return;
      const E decoded = detail::decode_event<E>(reading, event);
      const ContextScope scope = ContextScope::handling(event);
      listener(Recorded<E>{decoded, event});
    });
  }

  /// Calls `listener(const StoredEvent&)` for every event, undecoded.
  [[nodiscard]] Subscription on_any(std::function<void(const StoredEvent&)> listener);

  /// Calls the listeners for an event that wasn't just committed. True if none threw. Sets `error`
  /// to the first exception.
  bool deliver(const StoredEvent& event, std::exception_ptr* error = nullptr);

 private:
  [[nodiscard]] Subscription connect(std::function<void(const StoredEvent&)> listener);
  Reading reading() const noexcept;

  struct Listeners;
  std::unique_ptr<Listeners> listeners_;
};

}  // namespace stela
