// Metrics of Stela for Prometheus.
#pragma once

#include <stela/framework/event_store.hpp>
#include <stela/framework/log.hpp>
#include <stela/tool/export.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace stela {
class Store;
}

namespace stela::tool {

/// The metrics of a process, for one store or several. It adds up what stores, relays, runners and
/// consumers report, and queries the databases whenever its text is requested. `outbox work
/// --metrics` and `projections run --metrics` use it.
///
///     stela::tool::PrometheusMetrics metrics;
///     auto orders = stela::sqlite::open("orders.db", {.metrics = &metrics.sink("orders")});
///     auto stock = stela::sqlite::open("stock.db", {.metrics = &metrics.sink("stock")});
///     const auto watching_orders = metrics.watch(orders, "orders");
///     const auto watching_stock = metrics.watch(stock, "stock");
///     serve("/metrics", [&] { return metrics.text(); });
///
/// Threads: any.
class STELA_TOOL_EXPORT PrometheusMetrics final : public MetricSink {
 public:
  PrometheusMetrics();
  ~PrometheusMetrics() override;
  PrometheusMetrics(const PrometheusMetrics&) = delete;
  PrometheusMetrics& operator=(const PrometheusMetrics&) = delete;

  /// A sink whose values get the label store="name": for a store and everything that works on it.
  /// The same name gives the same sink. It lives as long as this object.
  MetricSink& sink(std::string_view store);

  /// While the subscription lives, `text` also contains metrics from the database of `store`: the
  /// lag and the messages of its outbox, and the lag of its projectors. They have the label
  /// store="name", or none if the name is empty. `stela_store_up` is 0 if the database doesn't
  /// answer. The subscription must end before the store and before this object. Ending it waits for
  /// a running call of `text`. UsageError if a store with that name is already watched.
  [[nodiscard]] Subscription watch(Store& store, std::string_view name = {});

  /// A value is dropped if there is no memory for it.
  void count(std::string_view name, std::int64_t by, Labels labels) noexcept override;
  void gauge(std::string_view name, double value, Labels labels) noexcept override;
  void observe(std::string_view name, double seconds, Labels labels) noexcept override;

  /// All metrics in Prometheus' text format, each once. docs/reference/metrics.md describes them.
  /// Reads the watched databases; their errors aren't thrown.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::tool
