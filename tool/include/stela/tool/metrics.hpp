// What Stela's parts report, for Prometheus to fetch.
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

/// The metrics of a process, for one store or several: a sink that adds up what stores, relays,
/// runners and consumers report to it, and a look at the databases whenever it is asked for its
/// text. `outbox work --metrics` and `projections run --metrics` do so by themselves.
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

  /// A sink whose values have the label store="name" here: for a store, and so for all that works
  /// on it. The same one for the same name. It lives as long as this.
  MetricSink& sink(std::string_view store);

  /// As long as the subscription lives, `text` also says what the database of `store` knows: the
  /// lag and the messages of its outbox, and the lag of its projectors, with the label
  /// store="name"; no label if the name is empty. `stela_store_up` is 0 if it doesn't answer. The
  /// subscription must end before the store and before this; its end waits for a `text` that is
  /// being made. UsageError if a store of that name is watched.
  [[nodiscard]] Subscription watch(Store& store, std::string_view name = {});

  /// Without memory for it a number is missing.
  void count(std::string_view name, std::int64_t by, Labels labels) noexcept override;
  void gauge(std::string_view name, double value, Labels labels) noexcept override;
  void observe(std::string_view name, double seconds, Labels labels) noexcept override;

  /// All of it in Prometheus' text form, each metric once; docs/reference/metrics.md says what each
  /// is. Reads the databases that are watched, and throws nothing that those throw.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::tool
