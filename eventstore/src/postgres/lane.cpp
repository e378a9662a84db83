#include "postgres/lane.hpp"

namespace stela::postgres {

void set_up_lane(Connection& connection, const std::string& lock_timeout) {
  connection.run(sql::set_up_lane{.lock_timeout = lock_timeout});
}

}  // namespace stela::postgres
