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
/// they were connected. A listener that throws stops nobody: it goes to the error sink. In a replay
/// nothing is committed, so nobody is called.
///
///     EventBus bus{store};
///     auto mails = bus.on<OrderShipped>([&](const Recorded<OrderShipped>& e) { mail(e->carrier);
///     });
///
/// Threads: listeners may be connected and disconnected from any thread; they are called on the
/// threads that commit, several at once if several do.
class STELA_FRAMEWORK_EXPORT EventBus {
 public:
  using ErrorSink = std::function<void(const StoredEvent&, std::exception_ptr)>;

  /// What listeners hear of: every commit, or only what is handed to `deliver`.
  enum class Feed : std::uint8_t { commits, deliver };

  /// Without an error sink, errors go to the store's log. `store` must outlive the bus.
  explicit EventBus(EventStore& store, ErrorSink on_error = {}, Feed feed = Feed::commits);
  ~EventBus();
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;

  /// `listener(const Recorded<E>&)` is called for each `E`, and for each event that `E` supersedes,
  /// converted. What it saves names the event as its cause.
  template <Event E, class Listener>
  [[nodiscard]] Subscription on(Listener listener) {
    static_assert(detail::check_event<E>());
    return connect([codec = codec(), listener = std::move(listener)](const StoredEvent& event) {
      if (!detail::is_stored_form_of<E>(event.kind)) return;
      const E decoded = detail::decode_event<E>(codec, event);
      const ContextScope scope = ContextScope::handling(event);
      listener(Recorded<E>{decoded, event});
    });
  }

  /// `listener(const StoredEvent&)` is called for every event, undecoded.
  [[nodiscard]] Subscription on_any(std::function<void(const StoredEvent&)> listener);

  /// Calls the listeners for an event that isn't fresh from a commit; true if none threw. What the
  /// first of them threw is in `error`.
  bool deliver(const StoredEvent& event, std::exception_ptr* error = nullptr);

 private:
  [[nodiscard]] Subscription connect(std::function<void(const StoredEvent&)> listener);
  Codec codec() const noexcept;

  struct Listeners;
  std::unique_ptr<Listeners> listeners_;
};

}  // namespace stela
