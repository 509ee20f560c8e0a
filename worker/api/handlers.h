/* handlers.h - the handlers that the route table names
 *
 * Process: worker, loop thread. The request is authenticated as its route demands; the body was not
 * read.
 */
#ifndef OTARI_WORKER_API_HANDLERS_H
#define OTARI_WORKER_API_HANDLERS_H

#include "worker/request.h"

void health_public(struct request *req);
void health_details(struct request *req);
void metrics_show(struct request *req);

void models_show_all(struct request *req);
void models_show(struct request *req);
void tools_show_all(struct request *req);

void keys_create(struct request *req);
void keys_show_all(struct request *req);
void keys_show(struct request *req);
void keys_delete(struct request *req);
void users_create(struct request *req);
void users_show_all(struct request *req);
void workspaces_create(struct request *req);
void workspaces_show_all(struct request *req);
void workspaces_show(struct request *req);
void workspaces_rename(struct request *req);
void workspaces_delete(struct request *req);
void policy_show(struct request *req);
void policy_put(struct request *req);
void policy_delete(struct request *req);
void tool_settings_show(struct request *req);
void tool_settings_change(struct request *req);
void tool_settings_test(struct request *req);

void files_upload(struct request *req);
void files_show_all(struct request *req);
void files_show(struct request *req);
void files_content(struct request *req);
void files_delete(struct request *req);

void responses_show(struct request *req);
void responses_delete(struct request *req);
void responses_show_items(struct request *req);
void responses_cancel(struct request *req);

#endif
