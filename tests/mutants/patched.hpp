// The workers of the patched copies: each is defined in a file that the build makes of a patch.
#pragma once

#include "mutants/worker.hpp"

#include <memory>

namespace stela::mutants::patched {

std::unique_ptr<Worker> skip_failed_row(const RelayOptions&, Fence, const Ports&);
std::unique_ptr<Worker> mark_on_timeout(const RelayOptions&, Fence, const Ports&);
std::unique_ptr<Worker> no_read_back_at_acquisition(const RelayOptions&, Fence, const Ports&);
std::unique_ptr<Worker> dedup_only(const RelayOptions&, Fence, const Ports&);
std::unique_ptr<Worker> replies_not_matched(const RelayOptions&, Fence, const Ports&);
std::unique_ptr<Worker> session_ends_on_miss(const RelayOptions&, Fence, const Ports&);
std::unique_ptr<Worker> no_retry_after_miss(const RelayOptions&, Fence, const Ports&);

}  // namespace stela::mutants::patched
