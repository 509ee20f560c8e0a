/* notify.h - tells a service manager how we are (sd_notify(3)'s datagrams, without its library) */
#ifndef OTARI_MASTER_NOTIFY_H
#define OTARI_MASTER_NOTIFY_H

/* "READY=1", "RELOADING=1", "STOPPING=1"; nothing happens without a service manager. */
void notify_manager(const char *text);

#endif
