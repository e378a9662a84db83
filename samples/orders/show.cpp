// Orders for people: their state now and earlier, and their history.
#include "commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

namespace orders {
namespace {

/// The old shop wrote names instead of numbers.
std::string name_of(stela::EventStore& store, const std::string& customer) {
  stela::UnitOfWork unit{store};
  const Customer* const known = unit.find(CustomerId::from(customer));
  return known != nullptr ? known->state().name.value_or("(forgotten)") : customer;
}

void print(stela::EventStore& store, const Order& order) {
  const OrderState& state = order.state();
  std::cout << order.stream().key() << "  " << to_string(state.stage) << "  " << state.quantity
            << " × " << state.sku << " for " << name_of(store, state.customer) << ", "
            << state.price.cents << ' ' << state.price.currency << " cents  (version "
            << order.version().value() << ")\n";
}

void print(const stela::StoredEvent& event) {
  std::cout << "  " << event.sequence.value() << "  "
            << stela::to_string(event.recorded_at).substr(11, 12) << "  " << event.stream.name()
            << '@' << event.version.value() << "  " << event.type() << " v"
            << event.schema_version() << "  " << event.payload
            << (event.publishes() ? "  → outbox" : "") << '\n';
}

/// Prints aligned columns.
void print(const stela::Rows& rows) {
  const auto text = [](const stela::SqlCell& cell) {
    if (const auto* number = std::get_if<std::int64_t>(&cell)) return std::to_string(*number);
    if (const auto* words = std::get_if<std::string>(&cell)) return *words;
    return std::string{};
  };
  const auto& columns = rows.columns();
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < columns.size(); ++column) {
    std::size_t width = columns[column].size();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      width = std::max(width, text(rows.cell(row, column)).size());
    }
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      std::cout << "  " << std::left << std::setw(static_cast<int>(widths[column])) << cell(column);
    }
    std::cout << '\n';
  };
  line([&](std::size_t column) { return columns[column]; });
  for (std::size_t row = 0; row < rows.size(); ++row) {
    line([&](std::size_t column) { return text(rows.cell(row, column)); });
  }
}

/// "5" is a version; any other text is a time.
stela::Moment moment(const std::string& text) {
  if (const auto time = stela::parse_timestamp(text)) return stela::as_of(*time);
  return stela::at_version(stela::StreamVersion{number(text, "VERSION or TIME (RFC 3339)")});
}

}  // namespace

void show(Application& application, std::span<const std::string> arguments) {
  const auto id = OrderId::from(arguments[0]);
  print(application.store, stela::Repository<Order>{application.store}.load(id));
  const std::string correlation = "order " + id.key();
  for (const stela::StoredEvent& event : application.store.read_all()) {
    if (event.stream == id.stream() || event.correlation == correlation) print(event);
  }
}

void show_at(Application& application, std::span<const std::string> arguments) {
  const auto id = OrderId::from(arguments[0]);
  print(application.store,
        stela::Repository<Order>{application.store}.load(id, moment(arguments[1])));
}

void list(Application& application, std::span<const std::string> arguments) {
  struct Table {
    std::string_view name;
    std::string_view sql;
  };
  static constexpr Table tables[] = {
      {"orders", "SELECT order_id, customer, sku, quantity, stage FROM open_orders LIMIT 20"},
      {"stock", "SELECT sku, available, reserved FROM stock_levels LIMIT 20"},
      {"sales", "SELECT * FROM sales_per_day ORDER BY day DESC LIMIT 20"},
  };
  const std::string wanted = arguments.empty() ? "orders" : arguments[0];
  for (const Table& table : tables) {
    if (table.name != wanted) continue;
    print(stela::ModelReader{application.store}.query(table.sql));
    return;
  }
  throw stela::UsageError{"there is no list '" + wanted + "'; there are orders, stock and sales"};
}

void rebuild(Application& application, std::span<const std::string> arguments) {
  const auto show_progress = [](const stela::ReplayProgress& progress) {
    std::cerr << "\r  " << static_cast<int>(progress.percent) << " %  "
              << static_cast<std::int64_t>(progress.events_per_second) << " events a second "
              << std::flush;
  };
  stela::ReplayOptions options{.projectors = {arguments[0]}};
  if (isatty(STDERR_FILENO) != 0) options.on_progress = show_progress;
  const stela::ReplayResult result = stela::Replayer{application.projections}.run(options);
  if (options.on_progress) std::cerr << "\r\x1b[K";
  for (const auto& model : result.models) {
    std::cout << model.projector << " was rebuilt from events 1 to " << model.position.value()
              << ", and serves now\n";
  }
}

}  // namespace orders
