#include <stela/nats/consumer.hpp>
#include <stela/nats/detail/settings.hpp>

#include "connect.hpp"
#include "consumer_worker.hpp"
#include "stream_source.hpp"
#include "subject_layout.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace stela::nats {
namespace {

void require(bool holds, const std::string& sentence) {
  if (!holds) throw UsageError{sentence};
}

void rest(const std::stop_token& stop, std::chrono::milliseconds wait) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock{mutex};
  never.wait_for(lock, stop, wait, [] { return false; });
}

ConsumerPorts real_ports() {
  return {.connect = std::make_unique<StreamSource, const ConsumerOptions&>, .rest = rest};
}

}  // namespace

void check_consumer_name(std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  require(!name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), is_word),
          "a consumer's name is 1 to 128 letters, digits, '_' and '-', not '" + std::string{name} +
              "'");
}

void check(const ConsumerOptions& options) {
  check(options.url, options.credentials, options.tls);
  api_prefix(options.api);
  check_consumer_name(options.name);
  require(!options.stream.empty(), "a consumer needs the name of a JetStream stream");
  check_stream_name(options.stream);
  require(!is_of_servers(options.filter_subject),
          "the filter_subject '" + options.filter_subject +
              "' is one of the server's own subjects, to which no event is published; take those "
              "of your events, such as \"shop.order.placed\"");
  check_ranges(consumer_settings(), options);
  require(options.retry_backoff <= options.retry_backoff_max,
          "retry_backoff is more than retry_backoff_max");
}

Consumer::Consumer(Store& store, const ConsumerOptions& options) {
  check(options);
  worker_ = std::make_unique<Worker>(store, options, real_ports());
}

Consumer::~Consumer() = default;

void Consumer::add(std::string_view event, std::unique_ptr<Handler> handler) {
  worker_->add(event, std::move(handler));
}

ConsumerTick Consumer::run_once() {
  return worker_->run_once();
}

void Consumer::run(std::stop_token stop) {
  worker_->run(std::move(stop));
}

void Consumer::on_tick(std::function<void(const ConsumerTick&)> listener) {
  worker_->on_tick(std::move(listener));
}

}  // namespace stela::nats
