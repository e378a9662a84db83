// The producers' database and the consumers', whichever engine they are on.
#pragma once

#include "chaos/settings.hpp"

#include <stela/eventstore.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace stela::chaos {

/// Lines begin with the number of the process.
LogSink& log_to_stderr();

struct ShopOptions {
  /// The number of the process, which says by which way it reaches a server.
  int number = 0;
  const Clock* clock = &system_clock();
  /// Of SQLite.
  std::string vfs = {};
};

Store open_shop(const Settings& settings, const ShopOptions& options = {});

/// Where consumers have their inbox and note what they have done.
Store open_effects(const Settings& settings, const ShopOptions& options = {});

/// Each row of the shop's tables as one text, as another program sees them: values joined by '|'.
std::vector<std::string> shop_rows(const Settings& settings, const std::string& sql);
std::int64_t shop_number(const Settings& settings, const std::string& sql);
/// The same of the consumers' tables.
std::vector<std::string> effect_rows(const Settings& settings, const std::string& sql);
std::int64_t effect_number(const Settings& settings, const std::string& sql);
/// The time in microseconds, in the engine's SQL.
std::string now_in_sql(const Settings& settings);

}  // namespace stela::chaos
