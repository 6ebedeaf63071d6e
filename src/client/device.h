// A device of a client, with the queue of its asynchronous work.
#pragma once

#include <memory>
#include <string>

#include "client/queue.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"

namespace kiln::client {

class Client;

// It lives as long as its client, and its references are the client's.
class Device {
 public:
  // `number` is its index in the client. The pool outlives it.
  Device(Client& client, int number, std::unique_ptr<runtime::Device> device,
         std::string description, bool shares_host_memory, runtime::ThreadPool& pool,
         std::string queue_name);

  Client& client() const { return client_; }
  int number() const { return number_; }
  const std::string& name() const { return runtime_->name(); }     // "CPU:0"
  const std::string& description() const { return description_; }  // one line, for people
  runtime::Device& runtime() const { return *runtime_; }
  // Whether its memory is the host's, so that buffers are shared without a copy.
  bool shares_host_memory() const { return shares_host_memory_; }
  // The host's threads for its work: its share of the client's.
  runtime::ThreadPool& pool() const { return pool_; }
  Queue& queue() const { return queue_; }

 private:
  Client& client_;
  const int number_;
  const std::unique_ptr<runtime::Device> runtime_;
  const std::string description_;
  const bool shares_host_memory_;
  runtime::ThreadPool& pool_;
  // The last member: its jobs are done before the rest is destroyed.
  mutable Queue queue_;
};

}  // namespace kiln::client
