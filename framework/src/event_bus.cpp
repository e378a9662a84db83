#include <stela/framework/event_bus.hpp>

#include "subscribe.hpp"

#include <array>

namespace stela {

namespace signals = boost::signals2;

namespace {

/// One delivery: the event and the first error.
struct Delivery {
  const StoredEvent& event;
  std::exception_ptr error = {};
};

void log_listener_error(EventStore& store, const StoredEvent& event, std::exception_ptr error) {
  std::string problem = "unknown exception";
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& e) {
    problem = e.what();
  } catch (...) {
    // `problem` already says so.
  }
  const std::array fields{LogEntry::Field{"event", event.describe()},
                          LogEntry::Field{"problem", problem}};
  store.conventions().log->write({.level = LogLevel::error,
                                  .name = "bus.listener_failed",
                                  .message = "a listener threw; the others were called",
                                  .fields = fields});
}

}  // namespace

struct EventBus::Listeners {
  explicit Listeners(EventStore& the_store) : store{the_store.anchor()} {}

  EventStore& store;
  ErrorSink on_error;
  signals::signal<void(Delivery&)> signal;
  Subscription commits;
};

EventBus::EventBus(EventStore& store, ErrorSink on_error, Feed feed)
    : listeners_{std::make_unique<Listeners>(store)} {
  listeners_->on_error = std::move(on_error);
  if (!listeners_->on_error) {
    listeners_->on_error = [&kept = listeners_->store](const StoredEvent& event,
                                                       std::exception_ptr error) {
      log_listener_error(kept, event, std::move(error));
    };
  }
  if (feed == Feed::deliver) return;
  listeners_->commits = store.on_commit([this](const CommitNotice& notice) {
    if (listeners_->signal.empty()) return;
    for (const StoredEvent& event : notice.events) deliver(event);
  });
}

EventBus::~EventBus() = default;

Subscription EventBus::on_any(std::function<void(const StoredEvent&)> listener) {
  return connect([listener = std::move(listener)](const StoredEvent& event) {
    const ContextScope scope = ContextScope::handling(event);
    listener(event);
  });
}

Subscription EventBus::connect(std::function<void(const StoredEvent&)> listener) {
  const auto guarded = [listener = std::move(listener)](Delivery& delivery) {
    try {
      listener(delivery.event);
    } catch (...) {
      if (!delivery.error) delivery.error = std::current_exception();
    }
  };
  return subscribe(listeners_->signal, guarded);
}

bool EventBus::deliver(const StoredEvent& event, std::exception_ptr* error) {
  Delivery delivery{event};
  listeners_->signal(delivery);
  if (!delivery.error) return true;
  try {
    listeners_->on_error(event, delivery.error);
  } catch (...) {
    // A sink that throws must not keep the next event from the listeners.
    log_listener_error(listeners_->store, event, std::current_exception());
  }
  if (error != nullptr) *error = delivery.error;
  return false;
}

Reading EventBus::reading() const noexcept {
  return listeners_->store.conventions().reading();
}

}  // namespace stela
