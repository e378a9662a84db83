#include "follow/blame.hpp"

#include "database/transaction.hpp"

#include <stela/framework/error.hpp>

#include <cstddef>
#include <new>

namespace stela::follow {

Blame blame_for(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return Blame::nobody;
  } catch (const UnknownEvent&) {
    return Blame::newer;
  } catch (const CorruptEvent&) {
    return Blame::unreadable;
  } catch (const database::CommittedByCaller&) {
    return Blame::committed;
  } catch (...) {
    return Blame::handler;
  }
}

std::string text_of(const std::exception_ptr& error) {
  constexpr std::size_t max_size = 2000;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return "there isn't enough memory for it";
  } catch (const std::exception& e) {
    return std::string{e.what()}.substr(0, max_size);
  } catch (...) {
    return "something was thrown that isn't a std::exception";
  }
}

Fault current_fault() {
  const std::exception_ptr error = std::current_exception();
  return {text_of(error), blame_for(error)};
}

Fault current_fault(const database::FailureWatch& watch) {
  const std::exception_ptr error = std::current_exception();
  const Blame blame = blame_for(error);
  if (blame != Blame::nobody) {
    watch.rethrow_failure();
    try {
      throw;
    } catch (const ParticipantMissing&) {
      // This program lacks what its store asks of every append: no event is to blame.
      throw;
    } catch (...) {
    }
  }
  return {text_of(error), blame};
}

}  // namespace stela::follow
